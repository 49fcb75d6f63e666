package attest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Referrer is a manifest that refers to another one, with everything that it needs.
type Referrer struct {
	Descriptor ocispec.Descriptor
	Manifest   []byte
	Blobs      [][]byte // contents of everything that the manifest references
}

// Store puts the referrer into a store. A push of its subject then includes it.
func (r *Referrer) Store(ctx context.Context, s *store.Store) error {
	release, err := s.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	for _, b := range r.Blobs {
		if _, _, err := s.PutBytes(ctx, b); err != nil {
			return err
		}
	}
	_, err = s.PutReferrer(ctx, r.Descriptor.MediaType, r.Manifest)
	return err
}

// bundleReferrer returns the referrer that holds a bundle.
func bundleReferrer(subject ocispec.Descriptor, predicateType string, bundle []byte) (*Referrer, error) {
	return newReferrer(subject, sigstore.BundleMediaType, bundle, map[string]string{
		sigstore.AnnotationContent:   "dsse-envelope",
		sigstore.AnnotationPredicate: predicateType,
	})
}

// newReferrer returns a referrer of one layer with the artifact's media type.
func newReferrer(
	subject ocispec.Descriptor, mediaType string, content []byte, annotations map[string]string,
) (*Referrer, error) {
	layer := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
	m, err := manifest.EncodeArtifact(manifest.Artifact{
		Type: mediaType, Subject: subject, Layers: []ocispec.Descriptor{layer}, Annotations: annotations,
	})
	if err != nil {
		return nil, err
	}
	desc, err := manifest.ReferrerDescriptor(ocispec.MediaTypeImageManifest, m)
	return &Referrer{desc, m, [][]byte{ocispec.DescriptorEmptyJSON.Data, content}}, err
}

// referrerReader lists and reads referrers: those of a store or of a repository. All content is verified against its
// digest. Content of more than limit bytes is an error.
type referrerReader interface {
	list(ctx context.Context, subject digest.Digest, artifactType string) ([]ocispec.Descriptor, error)
	manifest(ctx context.Context, d ocispec.Descriptor) ([]byte, error)
	blob(ctx context.Context, d ocispec.Descriptor, limit int64) ([]byte, error)
}

type storeReferrers struct{ *store.Store }

func (s storeReferrers) list(ctx context.Context, d digest.Digest, artifactType string) ([]ocispec.Descriptor, error) {
	return s.Referrers(ctx, d, artifactType)
}

func (s storeReferrers) manifest(_ context.Context, d ocispec.Descriptor) ([]byte, error) {
	return s.ReadBlob(d.Digest, manifest.MaxManifestSize)
}

func (s storeReferrers) blob(_ context.Context, d ocispec.Descriptor, limit int64) ([]byte, error) {
	return s.ReadBlob(d.Digest, limit)
}

type remoteReferrers struct{ *remote.Repository }

// referrersOf returns the referrers in the repository of a name.
func referrersOf(c *registry.Client, name manifest.Name) (referrerReader, error) {
	r, err := c.Repository(name, remote.Pull)
	return remoteReferrers{r}, err
}

func (r remoteReferrers) list(ctx context.Context, d digest.Digest, artifactType string) ([]ocispec.Descriptor, error) {
	return r.Referrers(ctx, d, artifactType)
}

func (r remoteReferrers) manifest(ctx context.Context, d ocispec.Descriptor) ([]byte, error) {
	m, err := r.GetManifest(ctx, string(d.Digest))
	if err != nil {
		return nil, err
	}
	return m.Bytes, nil
}

func (r remoteReferrers) blob(ctx context.Context, d ocispec.Descriptor, limit int64) ([]byte, error) {
	return r.GetBytes(ctx, d, limit)
}

// readReferrer reads a referrer of one layer of the given media type, and returns the layer's content too. Errors begin
// with the referrer's digest.
func readReferrer(
	ctx context.Context, from referrerReader, subject digest.Digest, d ocispec.Descriptor, mediaType string,
) (*Referrer, []byte, error) {
	b, err := from.manifest(ctx, d)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", d.Digest, err)
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, nil, fmt.Errorf("%s: %v: %w", d.Digest, err, sigstore.ErrBundle)
	}
	if m.Subject == nil || m.Subject.Digest != subject {
		return nil, nil, fmt.Errorf("%s: its manifest has another subject: %w", d.Digest, sigstore.ErrSubject)
	}
	if len(m.Layers) != 1 || m.Layers[0].MediaType != mediaType {
		return nil, nil, fmt.Errorf("%s: its manifest does not hold one bundle: %w", d.Digest, sigstore.ErrBundle)
	}
	content, err := from.blob(ctx, m.Layers[0], sigstore.MaxBundleSize)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", d.Digest, err)
	}
	config, err := from.blob(ctx, m.Config, sigstore.MaxBundleSize)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", d.Digest, err)
	}
	desc, err := manifest.ReferrerDescriptor(ocispec.MediaTypeImageManifest, b)
	return &Referrer{desc, b, [][]byte{config, content}}, content, err
}
