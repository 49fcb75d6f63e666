package shards

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/ingotml/ingot/models/shard"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
)

// Dir is the folder of a store that has parts of images.
const Dir = "shards"

// Folder is a worker's store, with the parts of images in it. Its methods are safe for concurrent use, also by several
// processes.
type Folder struct {
	own, parts *store.Store
	small      int64 // smallBlob, but for tests
	mu         sync.Mutex
	checked    map[string]bool // parts that had their checksums since this process started
}

// Open opens the parts of a worker's store.
func Open(own *store.Store) (*Folder, error) {
	parts, err := store.Open(own.Path(Dir))
	if err != nil {
		return nil, err
	}
	return &Folder{own: own, parts: parts, small: smallBlob, checked: map[string]bool{}}, nil
}

// Place says which rank of a group prepares its part of an image. Stages are the layers of all ranks; nil: each has
// parts of all tensors.
type Place struct {
	Rank, Size int
	Stages     shard.Stages
}

// Shard is what a rank has of an image.
type Shard struct {
	Store   *store.Store // where its blobs are
	Image   manifest.Image
	Fetched int64 // bytes that were fetched for it
}

// Has reports whether the worker's store has all blobs of an image.
func Has(s *store.Store, image digest.Digest) (manifest.Image, bool) {
	b, err := s.ReadBlob(image, manifest.MaxManifestSize)
	if err != nil {
		return manifest.Image{}, false
	}
	blobs, err := manifest.Blobs(b)
	if err != nil || slices.ContainsFunc(blobs, func(d ocispec.Descriptor) bool { return !s.HasBlob(d.Digest, d.Size) }) {
		return manifest.Image{}, false
	}
	_, decoded, err := s.Decode(b)
	return decoded, err == nil
}

// Prepare returns a rank's part of an image. What the store lacks of it is fetched. progress is called with the number
// of bytes that were fetched and of those that will have been, by one goroutine at a time; it may be nil.
func (f *Folder) Prepare(
	ctx context.Context, image digest.Digest, at Place, from *Source, progress func(done, total int64),
) (Shard, error) {
	if decoded, whole := Has(f.own, image); whole {
		return Shard{Store: f.own, Image: decoded}, nil
	}
	held, err := lock.Take(ctx, f.parts.Path("shards.lock"), lock.Options{})
	if err != nil {
		return Shard{}, fmt.Errorf("lock the parts of models in %s: %w", f.parts.Root(), err)
	}
	defer lock.Drop(held)
	p := &preparation{Folder: f, ctx: ctx, from: from, progress: progress, at: at}
	s, err := p.run(image)
	if err == nil {
		err = f.use(image)
	}
	if err != nil {
		return Shard{}, fmt.Errorf("prepare rank %d of %d: %w", at.Rank, at.Size, err)
	}
	return s, nil
}

// preparation is one call of Prepare.
type preparation struct {
	*Folder
	ctx      context.Context
	from     *Source
	progress func(done, total int64)
	at       Place
	done     int64 // bytes fetched
	total    atomic.Int64
	mu       sync.Mutex // of todo and done
	todo     []func() error
}

func (p *preparation) run(image digest.Digest) (Shard, error) {
	img, err := p.image(image)
	if err != nil {
		return Shard{}, err
	}
	var files, tensors []manifest.Layer
	for _, l := range img.Layers {
		if l.Kind == manifest.KindTensor {
			tensors = append(tensors, l)
		} else {
			files = append(files, l)
		}
	}
	if err := p.each(files, func(l manifest.Layer) error { return p.plan(l, nil) }); err != nil {
		return Shard{}, err
	}
	if err := p.fetch(); err != nil {
		return Shard{}, err
	}
	config, err := processor.Files{Store: p.parts, Image: img}.Config()
	if err != nil {
		return Shard{}, err
	}
	parts, err := shard.Divide(config, p.at.Stages, p.at.Rank, p.at.Size)
	if err != nil {
		return Shard{}, err
	}
	// Of equal blobs only the first is planned: one of a tensor that the rank has.
	slices.SortStableFunc(tensors, func(a, b manifest.Layer) int {
		return cmp.Compare(absent(parts, a), absent(parts, b))
	})
	err = p.each(tensors, func(l manifest.Layer) error {
		name, draft := blob.CutDraft(l.Name)
		if own, divided := parts[name]; divided && !draft {
			return p.plan(l, &own)
		}
		return p.plan(l, nil)
	})
	if err != nil {
		return Shard{}, err
	}
	if err := p.fetch(); err != nil {
		return Shard{}, err
	}
	return Shard{p.parts, img, p.done}, nil
}

// absent returns 1 for a tensor that the rank does not have, and otherwise 0.
func absent(parts map[string]shard.Part, l manifest.Layer) int {
	if name, draft := blob.CutDraft(l.Name); !draft && parts[name].Absent {
		return 1
	}
	return 0
}

// image returns the image, after its manifest and its config have been fetched.
func (p *preparation) image(d digest.Digest) (manifest.Image, error) {
	b, err := p.parts.ReadBlob(d, manifest.MaxManifestSize)
	if err != nil {
		if b, err = p.from.bytes(p.ctx, "manifests", d, manifest.MaxManifestSize); err != nil {
			return manifest.Image{}, err
		}
		if _, _, err := p.parts.PutBytes(p.ctx, b); err != nil {
			return manifest.Image{}, err
		}
	}
	blobs, err := manifest.Blobs(b)
	if err != nil {
		return manifest.Image{}, err
	}
	if len(blobs) > 0 && !p.parts.HasBlob(blobs[0].Digest, blobs[0].Size) { // the config
		config, err := p.from.bytes(p.ctx, "blobs", blobs[0].Digest, manifest.MaxConfigSize)
		if err != nil {
			return manifest.Image{}, err
		}
		if _, _, err := p.parts.PutBytes(p.ctx, config); err != nil {
			return manifest.Image{}, err
		}
	}
	_, img, err := p.parts.Decode(b)
	return img, err
}

// each calls plan for layers, several at a time.
func (p *preparation) each(layers []manifest.Layer, plan func(manifest.Layer) error) error {
	var group errgroup.Group
	group.SetLimit(Connections)
	seen := map[digest.Digest]bool{}
	for _, l := range layers {
		if seen[l.Digest] {
			continue // equal tensors, which divide alike
		}
		seen[l.Digest] = true
		group.Go(func() error {
			if err := plan(l); err != nil {
				return fmt.Errorf("%s: %w", l.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// fetch does what plan found to be missing.
func (p *preparation) fetch() error {
	todo := p.todo
	p.todo = nil
	p.report(0)
	var group errgroup.Group
	group.SetLimit(Connections)
	for _, fetch := range todo {
		group.Go(func() error {
			if err := p.ctx.Err(); err != nil {
				return err
			}
			return fetch()
		})
	}
	return group.Wait()
}

func (p *preparation) later(bytes int64, fetch func() error) {
	p.total.Add(bytes)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.todo = append(p.todo, fetch)
}

func (p *preparation) report(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	if p.progress != nil {
		p.progress(p.done, p.total.Load())
	}
}

// smallBlob is the size up to which blobs are fetched whole: their digests can be checked, and requests take time.
const smallBlob = 256 << 10

// plan finds out which bytes of a blob are missing. The rank reads its own part of it, all if that is nil.
func (p *preparation) plan(l manifest.Layer, own *shard.Part) error {
	whole := p.parts.BlobPath(l.Digest)
	if _, partial := p.readNote(l.Digest); !partial && p.parts.HasBlob(l.Digest, l.Size) {
		return nil
	}
	if p.own.HasBlob(l.Digest, l.Size) {
		// A link replaces a file with ranges of the blob, whose readers keep the old one.
		if err := p.link(l.Digest, whole); err == nil {
			return nil
		}
	}
	if own != nil && l.Size > p.small {
		ranges, err := p.ranges(l, *own)
		if err != nil {
			return err
		}
		if total(ranges) < l.Size-p.small/4 {
			return p.planRanges(l, ranges)
		}
	}
	p.later(l.Size, func() error { return p.fetchWhole(l) })
	return nil
}

// ranges returns the bytes of a tensor's blob that a rank with a part of it reads.
func (p *preparation) ranges(l manifest.Layer, own shard.Part) ([]shard.Range, error) {
	if n, _ := p.readNote(l.Digest); len(n.Parts) > 0 { // every part has the header
		if b, err := blob.Open(p.parts.BlobPath(l.Digest), l.Name); err == nil {
			if ranges, err := load.Ranges(b, own); err == nil {
				return ranges, nil
			}
		}
	}
	b, err := blob.Read(&headReader{ctx: p.ctx, from: p.from, d: l.Digest, size: l.Size}, l.Size, l.Name)
	if err != nil {
		return nil, err
	}
	return load.Ranges(b, own)
}

func total(ranges []shard.Range) (n int64) {
	for _, r := range ranges {
		n += r.Len()
	}
	return n
}

// link makes a blob of the worker's own store one of the parts.
func (p *preparation) link(d digest.Digest, to string) error {
	if err := p.parts.MakeBlobsDir(); err != nil {
		return err
	}
	if err := p.removePart(d); err != nil {
		return err
	}
	return os.Link(p.own.BlobPath(d), to)
}
