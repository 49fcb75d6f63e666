package layout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// containerdName is the annotation in which docker's builder and containerd keep the whole name of an image. The
// standard annotation then has only the tag.
const containerdName = "io.containerd.image.name"

// Root reads the manifest of the image that the layout was opened with, and returns its name in the layout, which may
// be empty. The error is an [ErrNoImage] if the layout has no such image, or several.
func (l *Layout) Root(ctx context.Context) (m *remote.Manifest, name string, err error) {
	d, err := l.lookup()
	if err == nil {
		_, err = l.blob(d.Digest)
	}
	if err != nil {
		return nil, "", err
	}
	b, err := l.Manifest(ctx, d.Digest)
	if err != nil {
		return nil, "", err
	}
	kind, err := manifest.CheckType(d.MediaType, b)
	if err == nil && d.Size != int64(len(b)) && d.Size != 0 {
		err = fmt.Errorf("its manifest has %d bytes, not %d: %w", len(b), d.Size, ErrLayout)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", l.ref, err)
	}
	return &remote.Manifest{MediaType: kind, Digest: d.Digest, Bytes: b}, nameOf(d), nil
}

// lookup finds the entry of the image. An image that is not an entry of the index is found by its digest.
func (l *Layout) lookup() (ocispec.Descriptor, error) {
	found := l.Images()
	if l.ref.Name != "" {
		found = l.named(found, l.ref.Name)
	}
	if want := l.ref.Digest; want != "" {
		found = slices.DeleteFunc(found, func(d ocispec.Descriptor) bool { return d.Digest != want })
		if _, err := l.blob(want); len(found) == 0 && l.ref.Name == "" && err == nil {
			return ocispec.Descriptor{Digest: want}, nil
		}
	}
	digests := map[digest.Digest]bool{}
	for _, d := range found {
		digests[d.Digest] = true
	}
	switch {
	case len(digests) == 1:
		return found[0], nil
	case len(digests) > 1:
		return ocispec.Descriptor{}, fmt.Errorf("%s stands for several images; name one: %s: %w",
			l.ref, l.choices(found), ErrNoImage)
	case len(l.Images()) == 0:
		return ocispec.Descriptor{}, fmt.Errorf("%s has no image: %w", l.ref.place(), ErrNoImage)
	}
	return ocispec.Descriptor{}, fmt.Errorf("%s is not there; there are: %s: %w",
		l.ref, l.choices(l.Images()), ErrNoImage)
}

// Images lists the entries that are images: those with a name, or without any, those that are no part of another one
// and no referrer.
func (l *Layout) Images() []ocispec.Descriptor {
	list := slices.DeleteFunc(l.index.entries(), isReferrersTag)
	named := slices.DeleteFunc(slices.Clone(list), func(d ocispec.Descriptor) bool { return nameOf(d) == "" })
	if len(named) > 0 {
		return named
	}
	parts := map[digest.Digest]bool{}
	if attached, err := l.attached(); err == nil {
		for _, of := range attached {
			for _, d := range of {
				parts[d.Digest] = true
			}
		}
	}
	list = distinct(list)
	for _, d := range list {
		if manifest.IsIndex(d.MediaType) {
			for _, child := range l.children(d.Digest) {
				parts[child.Digest] = true
			}
		}
	}
	return slices.DeleteFunc(list, func(d ocispec.Descriptor) bool { return parts[d.Digest] })
}

// named selects the entries with a name: that name itself, or else that tag, or else that model's name.
func (l *Layout) named(list []ocispec.Descriptor, name string) []ocispec.Descriptor {
	want, wantErr := manifest.ParseName(name)
	for _, same := range []func(have string) bool{
		func(have string) bool { return have == name },
		func(have string) bool {
			n, err := manifest.ParseName(have)
			return err == nil && strings.Contains(have, ":") && n.Tag == name
		},
		func(have string) bool {
			n, err := manifest.ParseName(have)
			return err == nil && wantErr == nil && n == want
		},
	} {
		var found []ocispec.Descriptor
		for _, d := range list {
			if same(nameOf(d)) || same(d.Annotations[containerdName]) {
				found = append(found, d)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// maxChoices limits the images that a message lists.
const maxChoices = 12

// choices lists references to images.
func (l *Layout) choices(list []ocispec.Descriptor) string {
	var refs []string
	for _, d := range list {
		ref := l.ref.with(nameOf(d))
		if same := l.named(list, ref.Name); ref.Name == "" || len(same) > 1 {
			ref.Digest = d.Digest
		}
		refs = append(refs, manifest.Clip(ref.String()))
	}
	if more := len(refs) - maxChoices; more > 0 {
		refs = append(refs[:maxChoices], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(refs, ", ")
}
