package sigstore

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/opencontainers/go-digest"
)

// Identifiers of the formats that a signature consists of.
const (
	// BundleMediaType is of sigstore/protobuf-specs v0.5, sigstore_bundle.proto.
	BundleMediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	PredicateType   = "https://sigstore.dev/cosign/sign/v1" // cosign v3.1.3, pkg/types/predicate.go
	payloadType     = "application/vnd.in-toto+json"        // in-toto/attestation v1, envelope.md
	statementType   = "https://in-toto.io/Statement/v1"     // in-toto/attestation v1, statement.md
)

// bundleMediaTypes are the media types of version 0.3.
var bundleMediaTypes = []string{BundleMediaType, "application/vnd.dev.sigstore.bundle+json;version=0.3"}

// MaxBundleSize limits the size of a bundle. A signature's has about 1 KiB, or some 20 KiB with transparency log
// entries.
const MaxBundleSize = 1 << 20

type bundle struct {
	MediaType            string    `json:"mediaType"`
	VerificationMaterial material  `json:"verificationMaterial"`
	DSSEEnvelope         *envelope `json:"dsseEnvelope"`
}

type material struct {
	PublicKey *publicKeyID `json:"publicKey,omitempty"`
}

type publicKeyID struct {
	Hint string `json:"hint"`
}

// envelope is secure-systems-lab/dsse v1.0.2, envelope.md. encoding/json writes and reads []byte as base64.
type envelope struct {
	Payload     []byte      `json:"payload"`
	PayloadType string      `json:"payloadType"`
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	Sig []byte `json:"sig"`
}

// annotationReference is the subject's annotation that holds the signed reference. Its key and meaning are those of
// critical.identity in the payload of simple signing (containers-signature(5)).
const annotationReference = "docker-reference"

// Sign returns a bundle that signs the manifest with this digest under a reference. If the reference is empty, the
// signature has none and holds for the manifest under any name.
func (k *PrivateKey) Sign(manifest digest.Digest, reference string) ([]byte, error) {
	var annotations map[string]json.RawMessage
	if reference != "" {
		value, err := json.Marshal(reference)
		if err != nil {
			return nil, err
		}
		annotations = map[string]json.RawMessage{annotationReference: value}
	}
	payload, err := encodeStatement(manifest, annotations, PredicateType, []byte("{}"))
	if err != nil {
		return nil, err
	}
	b, err := k.SignStatement(payload)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", manifest, err)
	}
	return b, nil
}

func (k *PrivateKey) sign(message []byte) ([]byte, error) {
	if _, ok := k.signer.(ed25519.PrivateKey); ok {
		return k.signer.Sign(nil, message, crypto.Hash(0))
	}
	sum := sha256.Sum256(message)
	return k.signer.Sign(nil, sum[:], crypto.SHA256) // deterministic, without a source of randomness: RFC 6979
}

// Verify checks that the bundle is a signature of the manifest with this digest by the holder of the key, and returns
// the reference that the statement names, or "" if it names none. Whether that reference is acceptable is the caller's
// decision. Errors are [ErrBundle], [ErrOtherKey], [ErrPurpose] or [ErrSubject].
func (k *PublicKey) Verify(bundleJSON []byte, manifest digest.Digest) (reference string, err error) {
	if err := checkDigest(manifest); err != nil {
		return "", err
	}
	e, err := k.open(bundleJSON)
	if err != nil {
		return "", err
	}
	return checkSignature(e, manifest)
}

// open returns the envelope of a bundle that the holder of the key signed.
func (k *PublicKey) open(bundleJSON []byte) (*envelope, error) {
	b, err := parseBundle(bundleJSON)
	if err != nil {
		return nil, err
	}
	e := b.DSSEEnvelope
	if !k.verify(preAuth(e.PayloadType, e.Payload), e.Signatures[0].Sig) {
		switch id := b.VerificationMaterial.PublicKey; {
		case id == nil:
			return nil, fmt.Errorf("a certificate's key, not this one (%s): %w", k.hint, ErrOtherKey)
		case id.Hint != k.hint:
			return nil, fmt.Errorf("key %q, not this one (%s): %w", excerpt(id.Hint), k.hint, ErrOtherKey)
		}
		return nil, fmt.Errorf("the signature does not match what is signed: %w", ErrBundle)
	}
	return e, nil
}

// parseBundle parses the parts of a bundle that verification with a key needs.
func parseBundle(b []byte) (*bundle, error) {
	if len(b) > MaxBundleSize {
		return nil, fmt.Errorf("a bundle of %d bytes, the limit is %d: %w", len(b), MaxBundleSize, ErrBundle)
	}
	var doc bundle
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("bundle: %v: %w", err, ErrBundle)
	}
	switch e := doc.DSSEEnvelope; {
	case !slices.Contains(bundleMediaTypes, doc.MediaType):
		return nil, fmt.Errorf("a bundle of type %q, not %s: %w", excerpt(doc.MediaType), BundleMediaType, ErrBundle)
	case e == nil:
		return nil, fmt.Errorf("a bundle without a DSSE envelope: %w", ErrBundle)
	case len(e.Signatures) != 1: // "exactly one signature", sigstore_bundle.proto
		return nil, fmt.Errorf("an envelope with %d signatures, not one: %w", len(e.Signatures), ErrBundle)
	}
	return &doc, nil
}

// verify reports whether the key signed a message. cosign signs with Ed25519ph if its transparency log may receive the
// signature (pkg/cosign/keys.go, GetDefaultLoadOptions). A signature of one kind is never valid as the other (RFC 8032,
// section 5.1).
func (k *PublicKey) verify(message, sig []byte) bool {
	switch key := k.key.(type) {
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(message)
		return ecdsa.VerifyASN1(key, sum[:], sig)
	case ed25519.PublicKey:
		if ed25519.Verify(key, message, sig) {
			return true
		}
		sum := sha512.Sum512(message)
		return ed25519.VerifyWithOptions(key, sum[:], sig, &ed25519.Options{Hash: crypto.SHA512}) == nil
	}
	return false
}

// checkSignature checks a statement whose signature has been verified, and returns the reference that it names.
func checkSignature(e *envelope, manifest digest.Digest) (reference string, err error) {
	if err := e.checkPayloadType(); err != nil {
		return "", err
	}
	s, err := parseStatement(e.Payload, manifest, PredicateType)
	if err != nil {
		return "", err
	}
	value, ok := s.Subject[0].Annotations[annotationReference]
	if !ok {
		return "", nil
	}
	// An empty or foreign value must not pass for a signature without a reference.
	if err := json.Unmarshal(value, &reference); err != nil || reference == "" {
		return "", fmt.Errorf("its %s is %s, not a reference: %w", annotationReference, excerpt(string(value)), ErrBundle)
	}
	return reference, nil
}

// preAuth returns the bytes that an envelope's signature covers: DSSE v1.0.2, protocol.md, "PAE".
func preAuth(payloadType string, payload []byte) []byte {
	var b bytes.Buffer
	b.WriteString("DSSEv1 ")
	b.WriteString(strconv.Itoa(len(payloadType)))
	b.WriteByte(' ')
	b.WriteString(payloadType)
	b.WriteByte(' ')
	b.WriteString(strconv.Itoa(len(payload)))
	b.WriteByte(' ')
	b.Write(payload)
	return b.Bytes()
}

func checkDigest(d digest.Digest) error {
	if err := d.Validate(); err != nil || d.Algorithm() != digest.SHA256 {
		return fmt.Errorf("%q is not a sha256 digest", excerpt(string(d)))
	}
	return nil
}
