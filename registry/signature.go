package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ErrNotSigned means that no signature of a manifest verifies with the key.
var ErrNotSigned = errors.New("not signed by this key")

// Annotations of a signature's manifest, as cosign v3.1.3 writes them (pkg/oci/remote/write.go). cosign adds a date,
// which is left out here, so that signing again gives the same manifest.
const (
	annotationBundleContent   = "dev.sigstore.bundle.content"
	annotationBundlePredicate = "dev.sigstore.bundle.predicateType"
)

// Signature is a referrer that holds a signature of a manifest.
type Signature struct {
	Descriptor ocispec.Descriptor
	Manifest   []byte
	Blobs      [][]byte // contents of everything that the manifest references, including the bundle
	Reference  string   // the reference that was signed; "" for none
}

// Sign signs a manifest, of which media type, digest and size are given. reference is the result of [SignedReference]
// for the manifest's name; "" signs without a reference.
func Sign(key *sigstore.PrivateKey, subject ocispec.Descriptor, reference string) (*Signature, error) {
	bundle, err := key.Sign(subject.Digest, reference)
	if err != nil {
		return nil, err
	}
	m, err := manifest.EncodeArtifact(manifest.Artifact{
		Type:    sigstore.BundleMediaType,
		Subject: subject,
		Layers: []ocispec.Descriptor{{MediaType: sigstore.BundleMediaType, Digest: digest.FromBytes(bundle),
			Size: int64(len(bundle))}},
		Annotations: map[string]string{
			annotationBundleContent:   "dsse-envelope",
			annotationBundlePredicate: sigstore.PredicateType,
		},
	})
	if err != nil {
		return nil, err
	}
	desc, err := manifest.ReferrerDescriptor(ocispec.MediaTypeImageManifest, m)
	return &Signature{desc, m, [][]byte{ocispec.DescriptorEmptyJSON.Data, bundle}, reference}, err
}

// Store puts the signature into a store. A push of its subject then includes it.
func (sig *Signature) Store(ctx context.Context, s *store.Store) error {
	release, err := s.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	for _, b := range sig.Blobs {
		if _, _, err := s.PutBytes(ctx, b); err != nil {
			return err
		}
	}
	_, err = s.PutReferrer(ctx, sig.Descriptor.MediaType, sig.Manifest)
	return err
}

// PushSignature pushes a signature to the repository of dst, which has its subject.
func (c *Client) PushSignature(ctx context.Context, dst manifest.Name, sig *Signature) error {
	_, err := c.PushReferrer(ctx, dst, sig.Descriptor.MediaType, sig.Manifest, sig.Blobs...)
	return err
}

// SignatureCheck holds the requirements for a signature.
type SignatureCheck struct {
	Key      *sigstore.PublicKey
	Name     manifest.Name  // the requested name
	Identity SignedIdentity // decides whether the signed reference is acceptable for the name
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
	if all := errors.Join(e.Tried...); errors.Is(all, ErrOtherReference) || errors.Is(all, ErrNoReference) {
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
	list, err := s.Referrers(ctx, subject, sigstore.BundleMediaType)
	if err != nil {
		return nil, err
	}
	read := func(_ context.Context, d ocispec.Descriptor, limit int64) ([]byte, error) {
		return s.ReadBlob(d.Digest, limit)
	}
	return findSignature(ctx, subject, want, list, read, read)
}

// Signature returns a signature of a manifest in the repository of want.Name that passes the check, else a
// [*SignatureError]. It stores nothing.
func (c *Client) Signature(ctx context.Context, subject digest.Digest, want SignatureCheck) (*Signature, error) {
	r, err := c.conn.Repository(want.Name, remote.Pull)
	if err != nil {
		return nil, err
	}
	list, err := r.Referrers(ctx, subject, sigstore.BundleMediaType)
	if err != nil {
		return nil, fmt.Errorf("list the signatures in %s/%s: %w", want.Name.Host, want.Name.Path, err)
	}
	readManifest := func(ctx context.Context, d ocispec.Descriptor, _ int64) ([]byte, error) {
		m, err := r.GetManifest(ctx, string(d.Digest))
		if err != nil {
			return nil, err
		}
		return m.Bytes, nil
	}
	return findSignature(ctx, subject, want, list, readManifest, r.GetBytes)
}

// reader reads and verifies the content of a descriptor. Content of more than limit bytes is an error.
type reader func(ctx context.Context, d ocispec.Descriptor, limit int64) ([]byte, error)

// findSignature returns a signature that passes the check. One that names a reference takes precedence over one that
// names none.
func findSignature(ctx context.Context, subject digest.Digest, want SignatureCheck, list []ocispec.Descriptor,
	readManifest, readBlob reader) (*Signature, error) {
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
		sig, err := readSignature(ctx, subject, want, d, readManifest, readBlob)
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
	readManifest, readBlob reader) (*Signature, error) {
	b, err := readManifest(ctx, d, manifest.MaxManifestSize)
	if err != nil {
		return nil, err
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("signature %s: %v: %w", d.Digest, err, sigstore.ErrBundle)
	}
	if m.Subject == nil || m.Subject.Digest != subject {
		return nil, fmt.Errorf("signature %s: its manifest has another subject: %w", d.Digest, sigstore.ErrSubject)
	}
	if len(m.Layers) != 1 || m.Layers[0].MediaType != sigstore.BundleMediaType {
		return nil, fmt.Errorf("signature %s: its manifest does not hold one bundle: %w", d.Digest, sigstore.ErrBundle)
	}
	bundle, err := readBlob(ctx, m.Layers[0], sigstore.MaxBundleSize)
	if err != nil {
		return nil, err
	}
	reference, err := want.Key.Verify(bundle, subject)
	if err == nil {
		err = want.Identity.check(reference, want.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("signature %s: %w", d.Digest, err)
	}
	config, err := readBlob(ctx, m.Config, sigstore.MaxBundleSize)
	if err != nil {
		return nil, err
	}
	desc, err := manifest.ReferrerDescriptor(ocispec.MediaTypeImageManifest, b)
	return &Signature{desc, b, [][]byte{config, bundle}, reference}, err
}
