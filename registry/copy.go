package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Copy copies an image with its referrers from one repository to another, of the same registry or of another one, and
// returns the digest of its manifest, which does not change. It needs no store: blobs that the destination lacks are
// mounted if both have the same registry, or else streamed, in chunks as [Client.Push] does. The manifest goes last. A
// copy that is run again skips the blobs that the destination has.
//
// The error is a [remote.ErrNotFound] if src does not exist or lacks a blob, a [remote.ErrNoHost] if a name has no
// host, and a [remote.ErrDigest] if a registry sends other bytes than the manifest names.
// The options' Format must be empty.
func (c *Client) Copy(ctx context.Context, src, dst manifest.Name, opts PushOptions) (digest.Digest, error) {
	d, err := c.copy(ctx, src, dst, opts)
	if err != nil {
		return "", fmt.Errorf("copy %s to %s: %w", src, dst, err)
	}
	return d, nil
}

func (c *Client) copy(ctx context.Context, src, dst manifest.Name, opts PushOptions) (digest.Digest, error) {
	if opts.Format != "" {
		return "", fmt.Errorf("a copy between registries keeps the encoding: %w", errors.ErrUnsupported)
	}
	from, err := c.conn.Repository(src, remote.Pull)
	if err != nil {
		return "", err
	}
	p, err := c.preparePusher(nil, dst, opts)
	if err != nil {
		return "", err
	}
	p.source = &copySource{c: c, r: from}
	p.from = p.source
	root, err := from.GetManifest(ctx, remote.Reference(src))
	if err != nil {
		return "", fmt.Errorf("%s: %w", src, err)
	}
	return p.run(ctx, *root, nil)
}

// copySource is the repository that an image is copied from. Its documents are read one after the other.
type copySource struct {
	c    *Client
	r    *remote.Repository
	read int64 // bytes of manifests
}

// Manifest fetches a manifest.
func (s *copySource) Manifest(ctx context.Context, d digest.Digest) ([]byte, error) {
	m, err := s.r.GetManifest(ctx, string(d))
	if err != nil {
		return nil, err
	}
	if s.read += int64(len(m.Bytes)); s.read > limits.CopyManifests {
		return nil, fmt.Errorf("the image and its referrers have more than %d MiB of manifests: %w",
			limits.CopyManifests>>20, manifest.ErrTooLarge)
	}
	return m.Bytes, nil
}

// Referrers lists the referrers of a manifest.
func (s *copySource) Referrers(ctx context.Context, subject digest.Digest) ([]ocispec.Descriptor, error) {
	list, err := s.r.Referrers(ctx, subject, "")
	if err != nil {
		return nil, fmt.Errorf("list the referrers of %s: %w", subject, err)
	}
	return list, nil
}

// mountCopied lets blobs be mounted from the source, if it is of the same registry.
func (p *pusher) mountCopied(blobs []blob) {
	from := p.source.r
	if from.Origin() != p.r.Origin() || from.Path == p.r.Path {
		return
	}
	for i := range blobs {
		blobs[i].from = []string{from.Path}
	}
	p.mounter, _ = p.c.conn.Repository(p.dst, remote.Push, from.Path)
}
