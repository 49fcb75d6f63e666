package layout

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/remote"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// openTarget opens the destination of an image. name is its name in a layout unless the place has one.
func openTarget(ctx context.Context, p Place, name string, image *registry.Image, warn func(string)) (target, error) {
	switch {
	case p.Store != nil:
		release, err := p.Store.Lock(ctx)
		if err != nil {
			return nil, err
		}
		return &storeTarget{p.Store, p.Name, image, release}, nil
	case p.Layout.Digest != "":
		return nil, fmt.Errorf("a destination has no digest; leave out @%s", p.Layout.Digest)
	}
	ref := *p.Layout
	if ref.Name == "" {
		ref.Name = name
	}
	if ref.Archive {
		return openArchive(ctx, ref, image, warn)
	}
	return openFolder(ctx, ref, image, warn)
}

// entriesOf returns the entries of an image and its referrers in an index.
func entriesOf(image *registry.Image, name string) (root ocispec.Descriptor, referrers []ocispec.Descriptor) {
	for _, m := range image.Referrers {
		referrers = append(referrers, entryOf(m))
	}
	if root = entryOf(rootOf(image)); name != "" {
		root.Annotations = map[string]string{ocispec.AnnotationRefName: name}
	}
	return root, referrers
}

func entryOf(m remote.Manifest) ocispec.Descriptor {
	d := ocispec.Descriptor{MediaType: m.MediaType, Digest: m.Digest, Size: int64(len(m.Bytes))}
	var doc ocispec.Manifest
	if json.Unmarshal(m.Bytes, &doc) == nil {
		d.ArtifactType = doc.ArtifactType
	}
	return d
}

// rootOf returns the manifest of the image itself.
func rootOf(image *registry.Image) remote.Manifest { return image.Manifests[len(image.Manifests)-1] }

// documents lists all manifests of an image.
func documents(image *registry.Image) []remote.Manifest {
	return append(image.Manifests[:len(image.Manifests):len(image.Manifests)], image.Referrers...)
}

// storeTarget is a name in a store.
type storeTarget struct {
	s       *store.Store
	name    manifest.Name
	image   *registry.Image
	release func()
}

func (t *storeTarget) close() { t.release() }

func (t *storeTarget) explain(err error) error { return t.s.Space().FullDisk(err) }

func (t *storeTarget) has(_ context.Context, d ocispec.Descriptor, progress func(int64)) (bool, error) {
	if !t.s.HasBlob(d.Digest, d.Size) {
		return false, nil
	}
	progress(d.Size)
	return true, nil
}

func (t *storeTarget) put(ctx context.Context, d ocispec.Descriptor, c *content, progress func(int64)) (way, error) {
	root, err := os.Stat(t.s.Root())
	if err != nil {
		return copied, err
	}
	if err := t.s.MakeBlobsDir(); err != nil {
		return copied, err
	}
	f, err := t.s.NewTemp(store.PartialPrefix + "*")
	if err != nil {
		return copied, err
	}
	defer os.Remove(f.Name()) // no effect after the rename
	defer f.Close()
	way, err := publish(ctx, f, t.s.BlobPath(d.Digest), c, d, root, progress)
	if err == nil {
		t.s.NoteWritten(d.Digest)
	}
	return way, err
}

func (t *storeTarget) finish(ctx context.Context) (string, error) {
	for _, m := range t.image.Referrers {
		if _, err := t.s.PutReferrer(ctx, m.MediaType, m.Bytes); err != nil {
			return "", err
		}
	}
	root := rootOf(t.image)
	_, err := t.s.PutRaw(ctx, t.name, root.MediaType, root.Bytes, store.PutOptions{})
	return t.name.String(), err
}
