// Package alltags copies all tags of a repository or of an OCI layout to another one.
//
// Contract:
//
//   - A tag has the same digest afterwards, and the referrers of its image are there.
//   - A tag that cannot be copied does not keep the others from being copied.
//   - A tag that names the same manifest with the same referrers already is not copied.
package alltags

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/layout"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Tag is what became of one tag.
type Tag struct {
	Tag       string
	Digest    digest.Digest // of its manifest; empty if it was not copied
	Unchanged bool          // it was the same before
	Err       error         // why it was not copied
}

// Copy copies every tag of src to dst, and calls each after every one, in the order of the list. Each is a repository,
// of whose name host and path are used, or a layout, of whose reference the path is used. An archive may be a source.
// Tags that registries without a referrers API keep for referrers are left out: the referrers are copied with their
// subjects. The error is that of the list, or the end of the context.
func Copy(
	ctx context.Context, c *registry.Client, src, dst layout.Place, o layout.Options, each func(Tag),
) error {
	from, err := open(ctx, c, src, true)
	if err != nil {
		return err
	}
	defer from.close()
	to, err := open(ctx, c, dst, false)
	if err != nil {
		return err
	}
	defer to.close()
	x := &copier{c, from, to, o}
	tags, names, err := from.tags(ctx)
	if err != nil {
		return err
	}
	if len(tags) == 0 {
		return fmt.Errorf("%s has no tags: %w", from, remote.ErrNotFound)
	}
	for _, tag := range tags {
		if referrersTag.MatchString(tag) {
			continue
		}
		t := x.tag(ctx, tag, names[tag])
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		each(t)
	}
	return nil
}

// referrersTag matches the tags of the specification's referrers tag schema.
var referrersTag = regexp.MustCompile(`^sha256-[0-9a-f]{64}$`)

type copier struct {
	c        *registry.Client
	from, to *side
	o        layout.Options
}

// tag copies one tag, which has a name at the source.
func (x *copier) tag(ctx context.Context, tag, name string) Tag {
	if d, err := x.same(ctx, tag, name); err == nil && d != "" {
		return Tag{Tag: tag, Digest: d, Unchanged: true}
	}
	src, dst := x.from.at(name), x.to.at(tag)
	if x.from.repo != nil && x.to.repo != nil {
		d, err := x.c.Copy(ctx, src.Name, dst.Name, x.o.Push)
		return Tag{Tag: tag, Digest: d, Err: err}
	}
	r, err := layout.Copy(ctx, x.c, src, dst, x.o)
	if err != nil {
		return Tag{Tag: tag, Err: err}
	}
	return Tag{Tag: tag, Digest: r.Digest}
}

// same returns the digest of a tag, if it names the same manifest with the same referrers on both sides, or "". Its
// errors are those of a copy too, which reports them.
func (x *copier) same(ctx context.Context, tag, name string) (digest.Digest, error) {
	d, err := x.to.head(ctx, tag)
	if err != nil || d == "" {
		return "", err
	}
	from, err := x.from.head(ctx, name)
	if err != nil || from != d {
		return "", err
	}
	if x.o.Push.NoReferrers {
		return d, nil
	}
	attached, err := x.from.referrers(ctx, d)
	if err != nil || len(attached) == 0 {
		return d, err
	}
	there, err := x.to.referrers(ctx, d)
	if err != nil {
		return "", err
	}
	for _, a := range attached {
		if !slices.ContainsFunc(there, func(b ocispec.Descriptor) bool { return a.Digest == b.Digest }) {
			return "", nil
		}
	}
	return d, nil
}
