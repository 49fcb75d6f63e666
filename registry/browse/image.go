package browse

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/encoding"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/remote"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Image is an image as a registry or a store describes it.
type Image struct {
	Name     manifest.Name
	Manifest remote.Manifest
	Config   []byte // nil if Unreadable

	Format  string         // the encoding of a model image; "" for others
	Model   manifest.Image // of a model image
	Unknown error          // why it is no model image that this program knows; nil for a model image

	Unreadable error // why there is no Config

	list Lister
}

// Inspect reads an image from the registry of its name.
func Inspect(ctx context.Context, c *registry.Client, name manifest.Name) (*Image, error) {
	r, err := c.Repository(name, remote.Pull)
	if err != nil {
		return nil, err
	}
	m, err := c.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	img := &Image{Name: name, Manifest: *m, list: r.Referrers}
	return img, img.decode(ctx, func(d ocispec.Descriptor) ([]byte, error) {
		return r.GetBytes(ctx, d, manifest.MaxConfigSize)
	})
}

// Stored reads an image of a store.
func Stored(ctx context.Context, s *store.Store, name manifest.Name) (*Image, error) {
	raw, err := s.ResolveRaw(ctx, name)
	if err != nil {
		return nil, err
	}
	d := raw.Descriptor
	img := &Image{
		Name:     raw.Name,
		Manifest: remote.Manifest{MediaType: d.MediaType, Digest: d.Digest, Bytes: raw.Bytes},
		list:     s.Referrers,
	}
	return img, img.decode(ctx, func(d ocispec.Descriptor) ([]byte, error) {
		return s.ReadBlob(d.Digest, manifest.MaxConfigSize)
	})
}

// Referrers lists what is attached to the image.
func (i *Image) Referrers(ctx context.Context) ([]Referrer, error) {
	return Referrers(ctx, i.list, i.Manifest.Digest, "")
}

// decode reads the config and decodes the image. The error is that of a context that ended.
func (i *Image) decode(ctx context.Context, read func(ocispec.Descriptor) ([]byte, error)) error {
	var doc struct{ Config *ocispec.Descriptor }
	_ = json.Unmarshal(i.Manifest.Bytes, &doc) // else Parse says why not
	parsed, err := encoding.Parse(i.Manifest.Bytes)
	i.Unknown = err
	if doc.Config == nil {
		i.Unreadable = fmt.Errorf("%s has no config", i.Name)
		return nil
	}
	i.Config, err = read(*doc.Config)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		i.Unreadable = fmt.Errorf("config of %s: %w", i.Name, err)
		if i.Unknown == nil {
			i.Unknown = i.Unreadable
		}
	case i.Unknown == nil:
		if i.Model, i.Unknown = encoding.Decode(i.Manifest.Bytes, i.Config); i.Unknown == nil {
			i.Format = parsed.Format
		}
	}
	return nil
}
