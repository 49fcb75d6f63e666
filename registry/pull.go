package registry

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/foreign"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/registry/choose"
	"github.com/ingotml/ingot/registry/fetch"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
)

// PullOptions configure [Client.Pull]. The zero value pulls the whole image.
type PullOptions struct {
	NoDraft bool // skip the draft model that an image may include
	// Only selects the layers whose tensor name, file path or file name matches one of these patterns (path.Match).
	// Empty: all layers.
	Only []string

	// Verify is called with the manifest's digest before any blob is fetched, and may refuse it. It may be nil.
	Verify func(ctx context.Context, d digest.Digest) error

	// Files accepts an image that holds a model's files. The blobs that the model is made of are stored, and no name is
	// set.
	Files bool
	// Model refuses an image that holds no model, before any blob is fetched.
	Model bool
}

// PullResult is the result of a pull.
type PullResult struct {
	Name    manifest.Name // as stored
	Digest  digest.Digest // of the manifest
	Bytes   int64         // of blobs that came from the registry
	Saved   int64         // bytes of the image's blobs that the store had
	Partial int           // blobs that the store lacks, because the options exclude them

	// Files is set if the image holds a model's files. Digest is that of its manifest. Collections keep the blobs until
	// Done is called, or for [ingest.Age].
	Files *foreign.Image
	Done  func()
}

// Pull downloads an image into the store. Blobs that the store has, and the parts of blobs that an earlier run left,
// are not fetched again. The name is set last and replaced atomically. A name with a digest and no tag gets the first
// 12 digits of the digest as its tag. The store's lock is held for moments only, not while the registry is waited for.
//
// If the options exclude layers, the entry is marked as partial. A later pull completes it.
func (c *Client) Pull(ctx context.Context, s *store.Store, name manifest.Name,
	opts PullOptions) (*PullResult, error) {
	p, err := c.newPuller(s, name)
	if err != nil {
		return nil, err
	}
	for _, glob := range opts.Only {
		if _, err := path.Match(glob, ""); err != nil {
			return nil, fmt.Errorf("pattern %q: %w", redact.Clip(glob), err)
		}
	}
	result, err := p.pull(ctx, name, opts)
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", name, err)
	}
	return result, nil
}

// FetchBlob downloads one blob or manifest of a named image into the store. The caller must hold the store's lock.
func (c *Client) FetchBlob(ctx context.Context, s *store.Store, name manifest.Name, desc ocispec.Descriptor) error {
	p, err := c.newPuller(s, name)
	if err != nil {
		return err
	}
	if slices.Contains(strings.Split(remote.ManifestTypes, ", "), desc.MediaType) {
		var m *remote.Manifest
		if m, err = p.src.GetManifest(ctx, string(desc.Digest)); err == nil {
			_, _, err = s.PutBytes(ctx, m.Bytes)
		}
	} else {
		err = p.fetch(ctx, pullBlob{desc, string(desc.Digest)})
	}
	if err != nil {
		return fmt.Errorf("fetch from %s: %w", name, err)
	}
	return nil
}

// puller is the state of one pull.
type puller struct {
	c         *Client
	s         *store.Store
	src       *remote.Repository
	fetcher   fetch.Fetcher
	remaining atomic.Int64 // blobs that are not complete yet

	mu     sync.Mutex
	result PullResult
}

func (c *Client) newPuller(s *store.Store, name manifest.Name) (*puller, error) {
	src, err := c.conn.Repository(name, remote.Pull)
	if err != nil {
		return nil, err
	}
	n := c.Concurrency(name.Host)
	p := &puller{c: c, s: s, src: src}
	p.fetcher = fetch.Fetcher{Store: s, Src: src, Tune: c.tune, BlobSlots: make(chan struct{}, n),
		RequestSlots: make(chan struct{}, n), Remaining: &p.remaining, Count: p.addBytes,
		Event: func(b fetch.Blob, e fetch.Event) {
			p.emit(pullBlob{b.Descriptor, b.Label}, Event{Kind: EventKind(e.Kind), Bytes: e.Bytes, Err: e.Err})
		}}
	return p, nil
}

func (p *puller) pull(ctx context.Context, name manifest.Name, opts PullOptions) (*PullResult, error) {
	m, err := p.manifest(ctx, name)
	if err != nil {
		return nil, err
	}
	if opts.Verify != nil {
		if err := opts.Verify(ctx, m.Digest); err != nil {
			return nil, err
		}
	}
	if p.result.Files, err = p.modelFiles(ctx, m.Bytes, opts); err != nil {
		return nil, err
	}
	wanted, skipped, err := p.selectBlobs(m.Bytes, opts)
	if err != nil {
		return nil, err
	}
	done, end, err := ingest.Pulling(ctx, p.s, m.Bytes)
	if err != nil {
		return nil, err
	}
	defer end()
	missing, err := p.plan(wanted, skipped)
	if err != nil {
		return nil, err
	}
	if err := p.fetchAll(ctx, missing); err != nil {
		return nil, err
	}
	p.result.Name = p.storeName(ctx, name, m.Digest)
	if p.result.Files != nil {
		p.result.Digest, p.result.Done, p.result.Partial = m.Digest, done, 0
		return &p.result, nil
	}
	put := store.PutOptions{Partial: len(skipped) > 0}
	if p.result.Digest, err = p.s.PutRaw(ctx, p.result.Name, m.MediaType, m.Bytes, put); err != nil {
		return nil, err
	}
	done()
	return &p.result, nil
}

// storeName returns the name for the store: the requested one without its digest.
func (p *puller) storeName(ctx context.Context, name manifest.Name, d digest.Digest) manifest.Name {
	if name.Tag == "" {
		if e, err := p.s.ResolveRaw(ctx, name); err == nil && e.Descriptor.Digest == d {
			name.Tag = e.Name.Tag
		} else {
			name.Tag = d.Encoded()[:12]
		}
	}
	name.Digest = ""
	return name
}

// manifest returns the manifest of an image. If the name refers to an index, that is the one image in it that is a
// model.
func (p *puller) manifest(ctx context.Context, name manifest.Name) (*remote.Manifest, error) {
	m, err := p.manifestBy(ctx, name, remote.Reference(name))
	if err != nil {
		return nil, err
	}
	get := func(d digest.Digest) (*remote.Manifest, error) { return p.manifestBy(ctx, name, string(d)) }
	return choose.Model(m, get, func(d digest.Digest) string {
		return manifest.Name{Host: name.Host, Path: name.Path, Digest: d}.String()
	})
}

// manifestBy returns the manifest with a tag or digest, from the store if it is unchanged there.
func (p *puller) manifestBy(ctx context.Context, name manifest.Name, ref string) (*remote.Manifest, error) {
	if m := p.fromStore(ctx, name, digest.Digest(ref)); m != nil {
		return m, nil
	}
	_, err := p.s.ResolveRaw(ctx, manifest.Name{Host: name.Host, Path: name.Path, Tag: name.Tag})
	known := err == nil && name.Digest == "" // the tag may still name the same manifest
	if known {
		if d, err := p.src.Once().HeadManifest(ctx, ref); err == nil && d != "" {
			if m := p.fromStore(ctx, name, d); m != nil {
				return m, nil
			}
		}
	}
	return p.src.GetManifest(ctx, ref)
}

// fromStore returns a manifest of this host and path from the store, or nil.
func (p *puller) fromStore(ctx context.Context, name manifest.Name, d digest.Digest) *remote.Manifest {
	if d.Validate() != nil {
		return nil
	}
	name.Tag, name.Digest = "", d
	e, err := p.s.ResolveRaw(ctx, name)
	if err != nil {
		return nil
	}
	mediaType, err := manifest.CheckType(e.Descriptor.MediaType, e.Bytes)
	if err != nil {
		return nil
	}
	return &remote.Manifest{MediaType: mediaType, Digest: d, Bytes: e.Bytes}
}

// plan returns the wanted blobs that have to be fetched, and checks that they fit on the disk.
func (p *puller) plan(wanted, skipped []pullBlob) (missing []pullBlob, err error) {
	var present, absent []pullBlob
	var total, need int64
	for _, b := range wanted {
		total += b.Size
		if p.s.HasBlob(b.Digest, b.Size) {
			p.result.Saved += b.Size
			present = append(present, b)
			continue
		}
		missing = append(missing, b)
		need += max(0, b.Size-ingest.PartialSpace(p.s, b.Digest))
	}
	for _, b := range skipped {
		total += b.Size
		if p.s.HasBlob(b.Digest, b.Size) {
			present = append(present, b)
		} else {
			absent = append(absent, b)
		}
	}
	p.result.Partial = len(absent)
	p.c.emit(Event{Kind: Plan, Total: total})
	for _, b := range absent {
		p.emit(b, Event{Kind: Skipped})
	}
	for _, b := range present {
		p.emit(b, Event{Kind: Present, Bytes: b.Size})
	}
	return missing, p.s.Space().Check(need)
}

// fetchAll fetches blobs into the store, several at a time.
func (p *puller) fetchAll(ctx context.Context, missing []pullBlob) error {
	g, ctx := errgroup.WithContext(ctx)
	p.remaining.Store(int64(len(missing)))
	g.SetLimit(2 * cap(p.fetcher.BlobSlots)) // half of them may wait for the disk, or for another process
	for _, b := range missing {
		g.Go(func() error {
			if ctx.Err() != nil { // another blob has failed
				return context.Cause(ctx)
			}
			defer p.remaining.Add(-1)
			return p.fetch(ctx, b)
		})
	}
	return g.Wait()
}

// fetch fetches one blob into the store.
func (p *puller) fetch(ctx context.Context, b pullBlob) error {
	return p.fetcher.Fetch(ctx, fetch.Blob{Descriptor: b.Descriptor, Label: b.label})
}

// emit reports an event of a blob.
func (p *puller) emit(b pullBlob, e Event) {
	e.Digest, e.Name, e.Total = b.Digest, b.label, b.Size
	p.c.emit(e)
}

// addBytes adds to the byte counts of the result.
func (p *puller) addBytes(bytes, saved int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.result.Bytes += bytes
	p.result.Saved += saved
}
