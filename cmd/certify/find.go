package certify

import (
	"context"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/attest"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/ingotml/ingot/runtime/certificate"
	"github.com/opencontainers/go-digest"
)

// Certificate is a certificate of an image.
type Certificate struct {
	Digest string `json:"digest"`               // of the attestation's manifest
	Key    string `json:"signed_key,omitempty"` // hint of the key that is said to have signed it; not verified
	certificate.Certificate
}

// List returns the certificates of an image in the store, the last stored first, and why others cannot be used.
func List(ctx context.Context, st *store.Store, image digest.Digest) (list []Certificate, unusable []error, err error) {
	found, unusable, err := attest.StoredAttestations(ctx, st, image,
		attest.AttestationCheck{PredicateType: certificate.PredicateType})
	if err != nil {
		return nil, nil, err
	}
	list, unusable = certificates(image, found, unusable)
	return list, unusable, nil
}

// Remote is [List] for an image of a registry.
func Remote(ctx context.Context, client *registry.Client, name manifest.Name,
	image digest.Digest) (list []Certificate, unusable []error, err error) {
	found, unusable, err := attest.Attestations(ctx, client, name, image,
		attest.AttestationCheck{PredicateType: certificate.PredicateType})
	if err != nil {
		return nil, nil, err
	}
	list, unusable = certificates(image, found, unusable)
	return list, unusable, nil
}

func certificates(image digest.Digest, found []*attest.Attestation, unusable []error) ([]Certificate, []error) {
	list := []Certificate{}
	for _, f := range found {
		c, err := certificate.Parse(f.Predicate, image)
		if err != nil {
			unusable = append(unusable, fmt.Errorf("attestation %s: %w", f.Descriptor.Digest, err))
			continue
		}
		list = append(list, Certificate{f.Descriptor.Digest.String(), f.Key, *c})
	}
	return list, unusable
}

// Requirement is what a certificate must state.
type Requirement struct {
	MaxKL float64
	Base  digest.Digest       // that it compares with; "": any
	Key   *sigstore.PublicKey // that signed it; nil: it may be unsigned
}

// Find returns nil if the store or the registry has a certificate of a manifest that meets the requirement. It stores a
// registry's.
func (r Requirement) Find(
	ctx context.Context, client *registry.Client, st *store.Store, name manifest.Name, image digest.Digest,
) error {
	check := attest.AttestationCheck{PredicateType: certificate.PredicateType, Key: r.Key}
	found, refused, err := attest.StoredAttestations(ctx, st, image, check)
	if err != nil {
		return err
	}
	if good, _ := r.choose(found, refused, image); good != nil {
		return nil
	}
	if found, refused, err = attest.Attestations(ctx, client, name, image, check); err != nil {
		return err
	}
	good, err := r.choose(found, refused, image)
	if err != nil {
		return err
	}
	return good.Store(ctx, st)
}

// choose returns the first certificate that meets the requirement. The error says why there is none. refused says why
// other attestations cannot be used.
func (r Requirement) choose(
	found []*attest.Attestation, refused []error, image digest.Digest,
) (*attest.Attestation, error) {
	for _, a := range found {
		c, err := certificate.Parse(a.Predicate, image)
		if err == nil {
			err = c.Meets(r.MaxKL, r.Base)
		}
		if err == nil {
			return a, nil
		}
		refused = append(refused, fmt.Errorf("certificate %s: %w", a.Descriptor.Digest, err))
	}
	by := ""
	if r.Key != nil {
		by = " by key " + r.Key.Hint()
	}
	if len(refused) == 0 {
		return nil, fmt.Errorf("%s has no certificate%s: %w", image, by, certificate.ErrNone)
	}
	var reasons []string
	for _, err := range refused[:min(len(refused), 3)] {
		reasons = append(reasons, err.Error())
	}
	return nil, fmt.Errorf("%s: %w%s: %s", image, certificate.ErrNone, by, strings.Join(reasons, "; "))
}
