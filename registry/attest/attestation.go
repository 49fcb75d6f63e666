package attest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Attestation is a referrer that holds an in-toto statement about a manifest, signed or not.
type Attestation struct {
	Referrer
	Predicate json.RawMessage
	Signed    bool
	Key       string // hint of the key that is said to have signed it; verified if a key was asked for
}

// New makes a statement about a manifest, of which media type, digest and size are given. A nil key does not sign.
func New(
	key *sigstore.PrivateKey, subject ocispec.Descriptor, predicateType string, predicate []byte,
) (*Attestation, error) {
	statement, err := sigstore.Statement(subject.Digest, predicateType, predicate)
	if err != nil {
		return nil, err
	}
	if key == nil {
		r, err := newReferrer(subject, sigstore.StatementMediaType, statement,
			map[string]string{sigstore.AnnotationStatement: predicateType})
		if err != nil {
			return nil, err
		}
		return &Attestation{Referrer: *r, Predicate: predicate}, nil
	}
	bundle, err := key.SignStatement(statement)
	if err != nil {
		return nil, err
	}
	r, err := bundleReferrer(subject, predicateType, bundle)
	if err != nil {
		return nil, err
	}
	return &Attestation{*r, predicate, true, key.Public().Hint()}, nil
}

// AttestationCheck holds the requirements for attestations.
type AttestationCheck struct {
	PredicateType string
	Key           *sigstore.PublicKey // must have signed them; nil accepts all, signed or not, and verifies no signature
}

// StoredAttestations returns the attestations of a manifest in a store that pass the check, the last stored first, and
// why others do not.
func StoredAttestations(
	ctx context.Context, s *store.Store, subject digest.Digest, want AttestationCheck,
) ([]*Attestation, []error, error) {
	return attestations(ctx, storeReferrers{s}, subject, want)
}

// Attestations returns the attestations of a manifest in the repository of a name that pass the check, and why others
// do not. It stores nothing.
func Attestations(
	ctx context.Context, c *registry.Client, name manifest.Name, subject digest.Digest, want AttestationCheck,
) ([]*Attestation, []error, error) {
	from, err := referrersOf(c, name)
	if err != nil {
		return nil, nil, err
	}
	found, refused, err := attestations(ctx, from, subject, want)
	if err != nil {
		return nil, nil, fmt.Errorf("list the attestations in %s/%s: %w", name.Host, name.Path, err)
	}
	return found, refused, nil
}

func attestations(
	ctx context.Context, from referrerReader, subject digest.Digest, want AttestationCheck,
) (found []*Attestation, refused []error, err error) {
	types := []string{sigstore.BundleMediaType}
	if want.Key == nil {
		types = append(types, sigstore.StatementMediaType)
	}
	read := 0
	for _, mediaType := range types {
		list, err := from.list(ctx, subject, mediaType)
		if err != nil {
			return nil, nil, err
		}
		for i := len(list) - 1; i >= 0; i-- {
			if err := ctx.Err(); err != nil {
				return nil, nil, context.Cause(ctx)
			}
			if read++; read > limits.Signatures {
				return found, append(refused, fmt.Errorf("%d more were not checked", i+1)), nil
			}
			a, err := readAttestation(ctx, from, subject, want, list[i], mediaType)
			switch {
			case err == nil:
				found = append(found, a)
			case !errors.Is(err, sigstore.ErrPurpose): // signatures are referrers of the same type
				refused = append(refused, err)
			}
		}
	}
	return found, refused, nil
}

func readAttestation(
	ctx context.Context, from referrerReader, subject digest.Digest, want AttestationCheck, d ocispec.Descriptor,
	mediaType string,
) (*Attestation, error) {
	r, statement, err := readReferrer(ctx, from, subject, d, mediaType)
	if err != nil {
		return nil, fmt.Errorf("attestation %w", err)
	}
	a := &Attestation{Referrer: *r, Signed: mediaType == sigstore.BundleMediaType}
	if a.Signed {
		if statement, a.Key, err = sigstore.Unverified(statement); err == nil && want.Key != nil {
			a.Key = want.Key.Hint()
			statement, err = want.Key.VerifyStatement(r.Blobs[len(r.Blobs)-1])
		}
	}
	if err == nil {
		a.Predicate, err = sigstore.ParseStatement(statement, subject, want.PredicateType)
	}
	if err != nil {
		return nil, fmt.Errorf("attestation %s: %w", d.Digest, err)
	}
	return a, nil
}
