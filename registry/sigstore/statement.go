package sigstore

import (
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"
)

type statement struct {
	Type          string          `json:"_type"`
	Subject       []subject       `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate,omitempty"`
}

// subject is an in-toto ResourceDescriptor v1. cosign v3 leaves its name empty, writes `cosign sign --annotations` into
// its annotations, and compares those with `cosign verify --annotations`.
type subject struct {
	Digest      map[string]string          `json:"digest"`
	Annotations map[string]json.RawMessage `json:"annotations,omitempty"`
}

// StatementMediaType is the media type of a statement that is not signed.
const StatementMediaType = payloadType

// Statement returns an in-toto statement about the manifest with this digest.
func Statement(manifest digest.Digest, predicateType string, predicate []byte) ([]byte, error) {
	return encodeStatement(manifest, nil, predicateType, predicate)
}

func encodeStatement(
	manifest digest.Digest, annotations map[string]json.RawMessage, predicateType string, predicate []byte,
) ([]byte, error) {
	if err := checkDigest(manifest); err != nil {
		return nil, err
	}
	return json.Marshal(statement{
		Type: statementType,
		Subject: []subject{{
			Digest: map[string]string{string(digest.SHA256): manifest.Encoded()}, Annotations: annotations,
		}},
		PredicateType: predicateType,
		Predicate:     predicate,
	})
}

// ParseStatement returns the predicate of a statement, which must be about the manifest with this digest and of the
// given type. Errors are [ErrBundle], [ErrPurpose] or [ErrSubject].
func ParseStatement(b []byte, manifest digest.Digest, predicateType string) (json.RawMessage, error) {
	s, err := parseStatement(b, manifest, predicateType)
	return s.Predicate, err
}

func parseStatement(b []byte, manifest digest.Digest, predicateType string) (s statement, err error) {
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("statement: %v: %w", err, ErrBundle)
	}
	if s.Type != statementType || s.PredicateType != predicateType {
		return s, fmt.Errorf("a statement %q of type %q, not %s: %w",
			excerpt(s.PredicateType), excerpt(s.Type), predicateType, ErrPurpose)
	}
	if len(s.Subject) != 1 {
		return s, fmt.Errorf("a statement about %d subjects, not one: %w", len(s.Subject), ErrSubject)
	}
	if got := s.Subject[0].Digest[string(digest.SHA256)]; got != manifest.Encoded() {
		return s, fmt.Errorf("sha256:%s, not %s: %w", excerpt(got), manifest, ErrSubject)
	}
	return s, nil
}

// SignStatement returns a bundle that signs a statement.
func (k *PrivateKey) SignStatement(statement []byte) ([]byte, error) {
	sig, err := k.sign(preAuth(payloadType, statement))
	if err != nil {
		return nil, err
	}
	return json.Marshal(bundle{
		MediaType:            BundleMediaType,
		VerificationMaterial: material{&publicKeyID{k.public.hint}},
		DSSEEnvelope:         &envelope{statement, payloadType, []signature{{sig}}},
	})
}

// VerifyStatement returns the statement of a bundle that the holder of the key signed. Errors are [ErrBundle],
// [ErrOtherKey] or [ErrPurpose].
func (k *PublicKey) VerifyStatement(bundleJSON []byte) ([]byte, error) {
	e, err := k.open(bundleJSON)
	if err == nil {
		err = e.checkPayloadType()
	}
	if err != nil {
		return nil, err
	}
	return e.Payload, nil
}

// Unverified returns the statement of a bundle and the hint of the key that is said to have signed it. It verifies
// nothing.
func Unverified(bundleJSON []byte) (statement []byte, hint string, err error) {
	b, err := parseBundle(bundleJSON)
	if err == nil {
		err = b.DSSEEnvelope.checkPayloadType()
	}
	if err != nil {
		return nil, "", err
	}
	if id := b.VerificationMaterial.PublicKey; id != nil {
		hint = id.Hint
	}
	return b.DSSEEnvelope.Payload, hint, nil
}

func (e *envelope) checkPayloadType() error {
	if e.PayloadType != payloadType {
		return fmt.Errorf("a payload of type %q, not %s: %w", excerpt(e.PayloadType), payloadType, ErrPurpose)
	}
	return nil
}
