package layout

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/remote"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// source is where an image is copied from.
type source interface {
	registry.Documents
	// root returns the manifest of the image, and the name that it has in a layout unless another one is given.
	root(ctx context.Context) (*remote.Manifest, string, error)
	open(ctx context.Context, d ocispec.Descriptor) (*content, error)
	close()
}

// content is a blob that is read.
type content struct {
	io.Reader
	closer  io.Closer
	file    *os.File // the file that has exactly the blob; nil if there is none
	steady  bool     // nothing writes to the file, so that it may be linked
	trusted bool     // the file need not be hashed
}

func (c *content) Close() error { return c.closer.Close() }

// openSource opens the source of a copy.
func openSource(ctx context.Context, c *registry.Client, p Place) (source, error) {
	switch {
	case p.Layout != nil && p.Opened != nil:
		return layoutSource{p.Opened.at(*p.Layout)}, nil
	case p.Layout != nil:
		l, err := Open(ctx, *p.Layout)
		if err != nil {
			return nil, err
		}
		return layoutSource{l}, nil
	case p.Store != nil:
		stored := registry.Stored{Store: p.Store}
		release, _, err := stored.Hold(ctx)
		if err != nil {
			return nil, err
		}
		return storeSource{stored, p.Name, release}, nil
	}
	r, err := c.Repository(p.Name, remote.Pull)
	if err != nil {
		return nil, err
	}
	return registrySource{c.Documents(r), c, r, p.Name}, nil
}

type layoutSource struct{ *Layout }

func (s layoutSource) root(ctx context.Context) (*remote.Manifest, string, error) { return s.Root(ctx) }

func (s layoutSource) close() { s.Close() }

func (s layoutSource) open(_ context.Context, d ocispec.Descriptor) (*content, error) {
	path, at, err := s.File(d)
	if err != nil {
		return nil, err
	}
	f, err := place.Open(path)
	if err != nil {
		return nil, err
	}
	c := &content{Reader: io.NewSectionReader(f, at, d.Size), closer: f}
	if s.members == nil {
		info, err := f.Stat()
		c.file, c.steady = f, err == nil && info.Mode().Perm() == 0o444
	}
	return c, nil
}

type storeSource struct {
	registry.Stored
	name    manifest.Name
	release func()
}

func (s storeSource) root(ctx context.Context) (*remote.Manifest, string, error) {
	raw, err := s.ResolveRaw(ctx, s.name)
	if err != nil {
		return nil, "", err
	}
	d := raw.Descriptor
	return &remote.Manifest{MediaType: d.MediaType, Digest: d.Digest, Bytes: raw.Bytes}, raw.Name.String(), nil
}

func (s storeSource) close() { s.release() }

func (s storeSource) open(_ context.Context, d ocispec.Descriptor) (*content, error) {
	if err := s.CheckBlob(d.Digest, d.Size); err != nil {
		return nil, err
	}
	f, err := s.OpenBlob(d.Digest)
	if err != nil {
		return nil, err
	}
	return &content{Reader: f, closer: f, file: f, steady: true, trusted: s.IsVerified(d.Digest)}, nil
}

type registrySource struct {
	registry.Documents
	c    *registry.Client
	r    *remote.Repository
	name manifest.Name
}

func (s registrySource) root(ctx context.Context) (*remote.Manifest, string, error) {
	m, err := s.r.GetManifest(ctx, remote.Reference(s.name))
	name := s.name
	if name.Digest != "" && name.Tag == "" {
		name.Tag = name.Digest.Encoded()[:12] // as a pull names it
	}
	name.Digest = ""
	return m, name.String(), err
}

func (s registrySource) close() {}

func (s registrySource) open(ctx context.Context, d ocispec.Descriptor) (*content, error) {
	r := s.c.OpenBlob(ctx, s.r, d)
	return &content{Reader: r, closer: r}, nil
}

// checkBlobs returns an error if the source is a store that lacks a blob.
func (s storeSource) checkBlobs(list []ocispec.Descriptor) error {
	for _, d := range list {
		if err := s.CheckBlob(d.Digest, d.Size); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}
