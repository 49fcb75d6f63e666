package attest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/signed"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ErrNotSigned means that no signature of a manifest verifies with the key.
var ErrNotSigned = errors.New("not signed by this key")

// Signature is a referrer that holds a signature of a manifest.
type Signature struct {
	Referrer
	Reference string // the reference that was signed; "" for none
}

// Sign signs a manifest, of which media type, digest and size are given. reference is the result of [signed.Reference]
// for the manifest's name; "" signs without a reference.
func Sign(key *sigstore.PrivateKey, subject ocispec.Descriptor, reference string) (*Signature, error) {
	bundle, err := key.Sign(subject.Digest, reference)
	if err != nil {
		return nil, err
	}
	r, err := bundleReferrer(subject, sigstore.PredicateType, bundle)
	if err != nil {
		return nil, err
	}
	return &Signature{*r, reference}, nil
}

// Push pushes a signature to the repository of dst, which has its subject.
func (sig *Signature) Push(ctx context.Context, c *registry.Client, dst manifest.Name) error {
	_, err := c.PushReferrer(ctx, dst, sig.Descriptor.MediaType, sig.Manifest, sig.Blobs...)
	return err
}

// SignatureCheck holds the requirements for a signature.
type SignatureCheck struct {
	Key      *sigstore.PublicKey
	Name     manifest.Name   // the requested name
	Identity signed.Identity // decides whether the signed reference is acceptable for the name
}

// SignatureError says why no signature of a manifest is acceptable. It is an [ErrNotSigned].
type SignatureError struct {
	Digest digest.Digest // of the manifest
	Tried  []error       // one error per signature checked; empty if there is no signature
}

func (e *SignatureError) Error() string {
	if len(e.Tried) == 0 {
		return fmt.Sprintf("%s is not signed", e.Digest)
	}
	summary := "is not signed by this key"
	if all := errors.Join(e.Tried...); errors.Is(all, signed.ErrOtherReference) || errors.Is(all, signed.ErrNoReference) {
		summary = "has no signature by this key for this name"
	}
	if len(e.Tried) == 1 {
		return fmt.Sprintf("%s %s: %v", e.Digest, summary, e.Tried[0])
	}
	var reasons []string
	for _, err := range e.Tried[:min(len(e.Tried), 3)] {
		reasons = append(reasons, err.Error())
	}
	if more := len(e.Tried) - len(reasons); more > 0 {
		reasons = append(reasons, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%s %s: %d signatures: %s", e.Digest, summary, len(e.Tried), strings.Join(reasons, "; "))
}

func (e *SignatureError) Is(target error) bool { return target == ErrNotSigned }
func (e *SignatureError) Unwrap() []error      { return e.Tried }

// StoredSignature returns a signature of a manifest in a store that passes the check, else a [*SignatureError].
func StoredSignature(ctx context.Context, s *store.Store, subject digest.Digest,
	want SignatureCheck) (*Signature, error) {
	from := storeReferrers{s}
	list, err := from.list(ctx, subject, sigstore.BundleMediaType)
	if err != nil {
		return nil, err
	}
	return findSignature(ctx, subject, want, list, from)
}

// RemoteSignature returns a signature of a manifest in the repository of want.Name that passes the check, else a
// [*SignatureError]. It stores nothing.
func RemoteSignature(ctx context.Context, c *registry.Client, subject digest.Digest,
	want SignatureCheck) (*Signature, error) {
	from, err := referrersOf(c, want.Name)
	if err != nil {
		return nil, err
	}
	list, err := from.list(ctx, subject, sigstore.BundleMediaType)
	if err != nil {
		return nil, fmt.Errorf("list the signatures in %s/%s: %w", want.Name.Host, want.Name.Path, err)
	}
	return findSignature(ctx, subject, want, list, from)
}

// findSignature returns a signature that passes the check. One that names a reference takes precedence over one that
// names none.
func findSignature(ctx context.Context, subject digest.Digest, want SignatureCheck, list []ocispec.Descriptor,
	from referrerReader) (*Signature, error) {
	failed := &SignatureError{Digest: subject}
	var unnamed *Signature
	for i, d := range list {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if i == limits.Signatures {
			failed.Tried = append(failed.Tried, fmt.Errorf("%d more were not checked", len(list)-i))
			break
		}
		sig, err := readSignature(ctx, subject, want, d, from)
		switch {
		case err == nil && sig.Reference != "":
			return sig, nil
		case err == nil:
			unnamed = sig
		case !errors.Is(err, sigstore.ErrPurpose): // attestations are referrers of the same type
			failed.Tried = append(failed.Tried, err)
		}
	}
	if unnamed != nil {
		return unnamed, nil
	}
	return nil, failed
}

func readSignature(ctx context.Context, subject digest.Digest, want SignatureCheck, d ocispec.Descriptor,
	from referrerReader) (*Signature, error) {
	r, bundle, err := readReferrer(ctx, from, subject, d, sigstore.BundleMediaType)
	if err != nil {
		return nil, fmt.Errorf("signature %w", err)
	}
	reference, err := want.Key.Verify(bundle, subject)
	if err == nil {
		err = want.Identity.Check(reference, want.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("signature %s: %w", d.Digest, err)
	}
	return &Signature{*r, reference}, nil
}
