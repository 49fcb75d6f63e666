package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
)

// Options configure [Run]. The zero value asks for each blob's size.
type Options struct {
	Digests     bool         // download every blob and hash it
	NoReferrers bool         // leave out signatures and other referrers
	Repair      *store.Store // send what is missing or damaged from this store; nil: only check
}

// Report is the result of a check.
type Report struct {
	Name      manifest.Name
	Digest    digest.Digest // of the image's manifest
	Manifests int           // with those of referrers
	Blobs     int
	Bytes     int64     // of the blobs, as the manifests say
	Problems  []Problem // manifests first, then blobs, the largest first
}

// OK reports whether there is no problem that is not repaired.
func (r Report) OK() bool {
	return !slices.ContainsFunc(r.Problems, func(p Problem) bool { return !p.Repaired })
}

// Problem is a blob or a manifest that the registry does not have as the image needs it.
type Problem struct {
	Kind     Kind
	Manifest bool // it is a manifest, else a blob
	ocispec.Descriptor
	Detail   string
	Repaired bool
	Repair   string // what the repair did, or why it could not; empty without one
}

// What is "manifest" or "blob".
func (p Problem) What() string {
	if p.Manifest {
		return "manifest"
	}
	return "blob"
}

// Name is the name of the blob's layer, or "".
func (p Problem) Name() string { return registry.BlobName(p.Descriptor) }

// Kind is the kind of a problem.
type Kind string

// The kinds of problems.
const (
	Missing    Kind = "missing"    // the registry says that it does not have it
	Size       Kind = "size"       // it has another size
	Corrupt    Kind = "corrupt"    // its content has another digest
	Unreadable Kind = "unreadable" // the registry does not answer, or refuses
	Unlisted   Kind = "unlisted"   // the referrers of this manifest cannot be listed
)

// Run checks an image. Client events report the blobs that are downloaded.
func Run(ctx context.Context, c *registry.Client, name manifest.Name, o Options) (*Report, error) {
	r, err := run(ctx, c, name, o)
	if err != nil {
		return nil, fmt.Errorf("check %s: %w", name, err)
	}
	return r, nil
}

func run(ctx context.Context, c *registry.Client, name manifest.Name, o Options) (*Report, error) {
	repo, err := c.Repository(name, remote.Pull)
	if err != nil {
		return nil, err
	}
	x := &check{c: c, name: name, repo: repo.Direct(), o: o}
	root, err := x.repo.GetManifest(ctx, remote.Reference(name))
	if errors.Is(err, remote.ErrNotFound) && o.Repair != nil {
		root, err = x.pushAgain(ctx, err)
	}
	if err != nil {
		return nil, err
	}
	x.report.Name, x.report.Digest = name, root.Digest
	if err := x.walk(ctx, *root); err != nil {
		return nil, err
	}
	if err := x.blobs(ctx); err != nil {
		return nil, err
	}
	if o.Repair != nil {
		err = x.repair(ctx)
	}
	return &x.report, err
}

// check is the state of a check.
type check struct {
	c    *registry.Client
	name manifest.Name
	repo *remote.Repository
	o    Options
	all  []ocispec.Descriptor // blobs, each digest once

	report Report
}

func (x *check) add(p Problem) { x.report.Problems = append(x.report.Problems, p) }

// blobs checks the blobs, several at a time.
func (x *check) blobs(ctx context.Context) error {
	for _, d := range x.all {
		x.report.Bytes += d.Size
	}
	x.report.Blobs = len(x.all)
	if x.o.Digests {
		x.c.Emit(registry.Event{Kind: registry.Plan, Total: x.report.Bytes})
	}
	found := make([]*Problem, len(x.all))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(x.c.Concurrency(x.name.Host))
	for i, d := range x.all {
		g.Go(func() error {
			found[i] = x.blob(ctx, d)
			return context.Cause(ctx)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, p := range found {
		if p != nil {
			x.add(*p)
		}
	}
	return nil
}

// blob checks a blob, and returns its problem.
func (x *check) blob(ctx context.Context, d ocispec.Descriptor) *Problem {
	if x.o.Digests {
		return x.read(ctx, d)
	}
	size, err := x.repo.StatBlob(ctx, d.Digest, d.Size)
	switch {
	case err != nil:
		return problemOf(d, err)
	case size >= 0 && size != d.Size:
		return &Problem{Kind: Size, Descriptor: d, Detail: fmt.Sprintf("it has %d bytes, not %d", size, d.Size)}
	}
	return nil
}

// problemOf returns the problem that an error is.
func problemOf(d ocispec.Descriptor, err error) *Problem {
	p := &Problem{Kind: Unreadable, Descriptor: d, Detail: err.Error()}
	switch {
	case errors.Is(err, remote.ErrNotFound):
		p.Kind = Missing
		p.Detail = "the registry does not have it"
	case errors.Is(err, remote.ErrDigest):
		p.Kind = Corrupt
	}
	return p
}

// read downloads a blob and hashes it.
func (x *check) read(ctx context.Context, d ocispec.Descriptor) *Problem {
	e := registry.Event{Kind: registry.Begin, Digest: d.Digest, Name: registry.BlobName(d), Total: d.Size}
	x.c.Emit(e)
	body := x.c.OpenBlob(ctx, x.repo, d)
	defer body.Close()
	h := digest.SHA256.Digester()
	_, err := io.Copy(h.Hash(), progress{body, func(n int) {
		e.Kind = registry.Moved
		e.Bytes += int64(n)
		x.c.Emit(e)
	}})
	if got := h.Digest(); err == nil && got != d.Digest {
		err = fmt.Errorf("the registry sent content with digest %s: %w", got, remote.ErrDigest)
	}
	e.Kind, e.Bytes = registry.Done, d.Size
	x.c.Emit(e)
	if err != nil {
		return problemOf(d, err)
	}
	return nil
}

// progress is a reader that reports what is read.
type progress struct {
	r    io.Reader
	read func(n int)
}

func (p progress) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if n > 0 {
		p.read(n)
	}
	return n, err
}
