package registry

import (
	"context"
	"fmt"
	"mime"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Referrers lists the manifests of a repository whose subject has this digest, such as signatures. Of the name, only
// host and path are used. If artifactType is not empty, manifests of other types are left out. If the registry has no
// referrers API, Referrers reads the referrers tag instead. See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#listing-referrers and
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#referrers-tag-schema.
func (c *Client) Referrers(ctx context.Context, name manifest.Name, subject digest.Digest,
	artifactType string) ([]ocispec.Descriptor, error) {
	r, err := c.conn.Repository(name, remote.Pull)
	if err != nil {
		return nil, err
	}
	list, err := r.Referrers(ctx, subject, artifactType)
	if err != nil {
		return nil, fmt.Errorf("list the referrers of %s in %s/%s: %w", subject, name.Host, name.Path, err)
	}
	return list, nil
}

// Resolve fetches the manifest of a name from its registry. It is verified against the digest, if the name has one.
func (c *Client) Resolve(ctx context.Context, name manifest.Name) (*remote.Manifest, error) {
	r, err := c.conn.Repository(name, remote.Pull)
	if err != nil {
		return nil, err
	}
	m, err := r.GetManifest(ctx, remote.Reference(name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if kind, _, err := mime.ParseMediaType(m.MediaType); err == nil {
		m.MediaType = kind
	}
	return m, nil
}
