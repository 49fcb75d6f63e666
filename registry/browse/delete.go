package browse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/verdict"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
)

// ErrNoDeletion means that a registry does not delete what was asked for.
var ErrNoDeletion = fault.Register(errors.New("the registry does not delete this"), fault.Kind{
	Name: "registry/browse.ErrNoDeletion", Means: "the registry does not delete a tag or a manifest",
	Rank: fault.Registry + 42, Transfer: fault.Gateway,
	Remedy: "delete it on the registry's website, or allow deletion there (REGISTRY_STORAGE_DELETE_ENABLED=true for " +
		"registry:2 and registry:3)",
})

// Limits on finding the tags of a manifest.
const (
	maxTagsChecked = 500 // of one repository
	asksAtATime    = 8
)

// Deletion is what a deletion will do.
type Deletion struct {
	Name   manifest.Name
	Digest digest.Digest
	Size   int64    // of the manifest's blobs
	Tags   []string // the other tags of the manifest
	// TagsUnknown says why it is unknown whether there are other tags. Then a name without a digest loses its tag only.
	TagsUnknown error
	Whole       bool                 // the manifest is deleted, with its tags and artifacts; else only the tag
	Attached    []ocispec.Descriptor // artifacts that are deleted too

	c       *registry.Client
	r       *remote.Repository
	subject digest.Digest // of the manifest, if it is an artifact itself; "" else
}

// PlanDeletion finds out what the deletion of a name does. A name with a digest loses the manifest with all tags. A
// name without one loses its tag, and the manifest too if no other tag names it.
func PlanDeletion(ctx context.Context, c *registry.Client, name manifest.Name) (*Deletion, error) {
	r, err := c.Repository(name, remote.Delete)
	if err != nil {
		return nil, err
	}
	m, err := r.GetManifest(ctx, remote.Reference(name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d := &Deletion{Name: name, Digest: m.Digest, c: c, r: r}
	if blobs, err := manifest.Blobs(m.Bytes); err == nil {
		for _, b := range blobs {
			d.Size += b.Size
		}
	}
	if doc, err := manifest.ParseReferrer(m.Bytes); err == nil && doc.Subject != nil {
		d.subject = doc.Subject.Digest
	}
	tagged, err := d.tagged(ctx)
	if err != nil {
		return nil, err
	}
	for tag, of := range tagged {
		if of == m.Digest && (tag != name.Tag || name.Digest != "") {
			d.Tags = append(d.Tags, tag)
		}
	}
	slices.Sort(d.Tags)
	if d.Whole = name.Digest != "" || d.TagsUnknown == nil && len(d.Tags) == 0; !d.Whole {
		return d, nil
	}
	list, err := Referrers(ctx, r.Referrers, m.Digest, "")
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		err = c.Skipped(name.Host, fmt.Errorf("what is attached to %s stays there: %w", name, err))
	}
	d.attach(list, tagged)
	return d, err
}

// attach lists artifacts, each after those that are attached to it. One with a tag of its own stays.
func (d *Deletion) attach(list []Referrer, tagged map[string]digest.Digest) {
	for _, a := range list {
		d.attach(a.Referrers, tagged)
		named := false
		for _, of := range tagged {
			named = named || of == a.Digest
		}
		if !named {
			d.Attached = append(d.Attached, a.Descriptor)
		}
	}
}

// tagged returns the digests of the repository's tags, or sets TagsUnknown. The error is that of a context that ended.
func (d *Deletion) tagged(ctx context.Context) (map[string]digest.Digest, error) {
	list, err := listTags(ctx, d.r)
	var tags []string
	if err == nil {
		tags = list.tags
	}
	tags = slices.DeleteFunc(tags, IsDigestTag)
	if len(tags) > maxTagsChecked {
		err = fmt.Errorf("%s/%s has %d tags: %w", d.Name.Host, d.Name.Path, len(tags), manifest.ErrTooLarge)
	}
	found := make([]digest.Digest, len(tags))
	if err == nil {
		asks, ctx := errgroup.WithContext(ctx)
		asks.SetLimit(asksAtATime)
		for i, tag := range tags {
			asks.Go(func() (err error) {
				found[i], err = d.r.HeadManifest(ctx, tag)
				return err
			})
		}
		err = asks.Wait()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if d.TagsUnknown = err; err != nil {
		return nil, nil
	}
	tagged := map[string]digest.Digest{}
	for i, tag := range tags {
		tagged[tag] = found[i]
	}
	return tagged, nil
}

// Run deletes. A manifest goes before what is attached to it, so that nobody who sees it misses a signature. Attached
// artifacts that cannot be deleted are left out; see [remote.Client.Skipped].
func (d *Deletion) Run(ctx context.Context) error {
	if !d.Whole {
		return d.untag(ctx)
	}
	err := deleteManifest(ctx, d.r, string(d.Digest))
	if errors.Is(err, remote.ErrUnsupported) && d.Name.Digest == "" && deleteManifest(ctx, d.r, d.Name.Tag) == nil {
		return nil // the tag is gone; the registry collects the manifest, or keeps it
	}
	if err == nil {
		err = d.dropTags(ctx)
	}
	if err != nil {
		return d.failed(err)
	}
	var first error
	for _, a := range d.Attached {
		first = cmp.Or(first, deleteManifest(ctx, d.r, string(a.Digest)))
	}
	first = cmp.Or(first, d.cleanIndexes(ctx))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if first != nil {
		return d.c.Skipped(d.Name.Host, fmt.Errorf("%s is deleted, but not all that was attached to it: %w", d.Name, first))
	}
	return nil
}

// dropTags deletes the tags that are left of a deleted manifest: some registries, such as go-containerregistry's, keep
// them with a copy of it.
func (d *Deletion) dropTags(ctx context.Context) error {
	tags := d.Tags
	if d.Name.Digest == "" {
		tags = append([]string{d.Name.Tag}, tags...)
	}
	for _, tag := range tags {
		if there, err := d.r.HeadManifest(ctx, tag); err != nil || there != d.Digest {
			continue // gone, or nobody can tell
		}
		if err := deleteManifest(ctx, d.r, tag); err != nil {
			return fmt.Errorf("the tag %s keeps the manifest: %w", tag, err)
		}
	}
	return nil
}

// cleanIndexes deletes the indexes of referrers of what was deleted, and takes a deleted artifact out of the index of
// its subject. Registries with a referrers API have none. It goes on after a failure, and returns the first.
func (d *Deletion) cleanIndexes(ctx context.Context) (first error) {
	gone := []digest.Digest{d.Digest}
	for _, a := range d.Attached {
		gone = append(gone, a.Digest)
	}
	for _, g := range gone {
		tag := remote.ReferrersTag(g)
		index, err := d.r.HeadManifest(ctx, tag)
		if err == nil && index != "" {
			if err = deleteManifest(ctx, d.r, string(index)); errors.Is(err, remote.ErrUnsupported) {
				err = deleteManifest(ctx, d.r, tag)
			}
		}
		first = cmp.Or(first, err)
	}
	if d.subject != "" {
		first = cmp.Or(first, d.r.UntagReferrer(ctx, d.subject, d.Digest))
	}
	return first
}

// untag deletes the tag only.
func (d *Deletion) untag(ctx context.Context) error {
	there, err := d.r.HeadManifest(ctx, d.Name.Tag)
	if err == nil && there != "" && there != d.Digest {
		return fmt.Errorf("delete %s: it is %s by now: %w", d.Name, there, remote.ErrInterrupted)
	}
	err = deleteManifest(ctx, d.r, d.Name.Tag)
	if errors.Is(err, remote.ErrUnsupported) {
		// Whether the registry deletes manifests is seen from one that cannot exist.
		if err := deleteManifest(ctx, d.r, string(digest.FromString(""))); err != nil {
			return d.failed(err)
		}
		others := "may have other tags"
		if len(d.Tags) > 0 {
			others = "is tagged " + strings.Join(d.Tags, ", ") + " too"
		}
		return fmt.Errorf("delete %s: the registry deletes no single tag: %w; the manifest %s: `ingot delete %s` deletes all",
			d.Name, err, others, manifest.Name{Host: d.Name.Host, Path: d.Name.Path, Digest: d.Digest})
	}
	if err != nil {
		return d.failed(err)
	}
	if len(d.Tags) == 0 {
		return nil
	}
	there, err = d.r.HeadManifest(ctx, d.Tags[0])
	if err == nil && there == "" {
		return fmt.Errorf("delete %s: the registry deleted the manifest with its other tags: %s; push it again", d.Name,
			strings.Join(d.Tags, ", "))
	}
	return nil
}

// failed returns the error of a deletion that a registry refused.
func (d *Deletion) failed(err error) error {
	if errors.Is(err, remote.ErrUnsupported) {
		return fmt.Errorf("delete %s: %w: %w", d.Name, ErrNoDeletion, err)
	}
	return fmt.Errorf("delete %s: %w", d.Name, err)
}

// deleteManifest deletes a manifest with all its tags if ref is its digest, or else only the tag ref. One that is gone
// is no error. The error is an [remote.ErrUnsupported] if the registry does not do that. See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#content-management.
func deleteManifest(ctx context.Context, r *remote.Repository, ref string) error {
	_, err := remote.Retry(ctx, r.Attempts(), func() (struct{}, error) { return struct{}{}, deleteOnce(ctx, r, ref) })
	var status *remote.StatusError
	if !errors.As(err, &status) {
		return err
	}
	switch verdict.Of(verdict.Delete, status.Status) {
	case verdict.FallBack:
		return fmt.Errorf("%w: %w", remote.ErrUnsupported, err)
	case verdict.Absent: // or the registry knows no such request
		there, headErr := r.HeadManifest(ctx, ref)
		switch {
		case headErr != nil:
			return headErr
		case there != "":
			return fmt.Errorf("%w: %w", remote.ErrUnsupported, err)
		}
		return nil
	}
	return err
}

func deleteOnce(ctx context.Context, r *remote.Repository, ref string) error {
	req, err := r.Request(ctx, http.MethodDelete, r.URL("manifests", ref), nil)
	if err != nil {
		return err
	}
	resp, err := r.Do(req)
	if err != nil {
		return err
	}
	defer remote.Drain(resp)
	return remote.Expect(resp, http.StatusAccepted, http.StatusOK, http.StatusNoContent)
}
