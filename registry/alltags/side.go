package alltags

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/browse"
	"github.com/ingotml/ingot/registry/layout"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// side is a repository or a layout.
type side struct {
	c     *registry.Client
	place layout.Place
	repo  *remote.Repository // nil for a layout
	l     *layout.Layout     // nil for a repository, and for a layout that does not exist yet
}

// open opens one side of a copy.
func open(ctx context.Context, c *registry.Client, p layout.Place, source bool) (*side, error) {
	s := &side{c: c, place: p}
	var err error
	if p.Layout == nil {
		s.repo, err = c.Repository(p.Name, remote.Pull)
		if err == nil && !source {
			s.repo = s.repo.Direct()
		}
		return s, err
	}
	s.l, err = layout.Open(ctx, *p.Layout)
	if errors.Is(err, fs.ErrNotExist) && !source {
		err = nil
	}
	return s, err
}

func (s *side) close() {
	if s.l != nil {
		s.l.Close()
	}
}

// String names the repository or the layout.
func (s *side) String() string {
	if s.repo != nil {
		return s.place.Name.Host + "/" + s.place.Name.Path
	}
	return s.place.String()
}

// tags lists the tags, and the names that they have there.
func (s *side) tags(ctx context.Context) (tags []string, names map[string]string, err error) {
	names = map[string]string{}
	if s.repo != nil {
		tags, err = browse.Tags(ctx, s.c, s.place.Name)
		for _, tag := range tags {
			names[tag] = tag
		}
		return tags, names, err
	}
	for _, d := range s.l.Images() {
		name := d.Annotations[ocispec.AnnotationRefName]
		tag := name
		if n, err := manifest.ParseName(name); err == nil && !manifest.ValidTag(name) {
			tag = n.Tag
		}
		if !manifest.ValidTag(tag) {
			return nil, nil, fmt.Errorf("%s has an image without a tag; copy it by its digest, %s@%s", s, s, d.Digest)
		}
		if had, twice := names[tag]; twice && had != name {
			return nil, nil, fmt.Errorf("%s has the tag %s twice, of %s and of %s; copy them by their names", s, tag,
				manifest.Clip(had), manifest.Clip(name))
		}
		if _, twice := names[tag]; !twice {
			tags = append(tags, tag)
		}
		names[tag] = name
	}
	return tags, names, nil
}

// at returns the place of a tag.
func (s *side) at(name string) layout.Place {
	p := s.place
	if s.repo != nil {
		p.Name.Tag, p.Name.Digest = name, ""
		return p
	}
	ref := *p.Layout
	ref.Name = name
	p.Layout, p.Opened = &ref, s.l // so that a compressed archive is unpacked once
	return p
}

// head returns the digest of the image with a name, or "".
func (s *side) head(ctx context.Context, name string) (digest.Digest, error) {
	if s.repo != nil {
		return s.repo.HeadManifest(ctx, name)
	}
	if s.l == nil {
		return "", nil
	}
	for _, d := range s.l.Images() {
		if d.Annotations[ocispec.AnnotationRefName] == name {
			return d.Digest, nil
		}
	}
	return "", nil
}

// referrers lists the manifests with this subject.
func (s *side) referrers(ctx context.Context, subject digest.Digest) ([]ocispec.Descriptor, error) {
	if s.repo != nil {
		return s.repo.Referrers(ctx, subject, "")
	}
	return s.l.Referrers(ctx, subject)
}
