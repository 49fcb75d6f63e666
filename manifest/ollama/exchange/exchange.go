package exchange

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/encoding"
	"github.com/ingotml/ingot/manifest/ollama"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
)

// Options are options of [Ollama.Import] and [Ollama.Export].
type Options struct {
	Format   string                  // Import only: the encoding to store; empty keeps the manifest unchanged
	Progress func(done, total int64) // in bytes; may be nil
}

// Report counts the bytes of blobs that an import or export handled, by method.
type Report struct {
	Digest  digest.Digest // of the manifest
	Present int64         // already present at the destination
	Linked  int64         // hard-linked
	Cloned  int64         // cloned copy-on-write (reflink)
	Copied  int64
}

// exchangeWorkers is the number of blobs handled concurrently.
const exchangeWorkers = 4

// Import copies a model from Ollama's store to s. It keeps the manifest byte for byte unless the options ask for
// another encoding. A model that has no tensor layers is a [manifest.ErrUnknownManifest].
//
// Import verifies the digest of every blob that it adds. It hard-links a blob only if the file is read-only, as after
// an Export: Ollama's own blobs are writable, and the blobs of s must not change because they are memory-mapped.
// Otherwise it clones the file if the file system supports that, and copies it if not.
func (o *Ollama) Import(
	ctx context.Context, from ollama.Name, s *store.Store, to manifest.Name, opts Options,
) (*Report, error) {
	manifestBytes, err := o.manifest(from)
	if err != nil {
		return nil, err
	}
	x := &transfer{s: s, o: o, progress: opts.Progress}
	if err := x.importAs(ctx, manifestBytes, to, opts.Format); err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return &x.report, nil
}

func (x *transfer) importAs(ctx context.Context, manifestBytes []byte, to manifest.Name, format string) error {
	m, err := encoding.Parse(manifestBytes)
	if err != nil {
		return err
	}
	blobs, err := manifest.Blobs(manifestBytes)
	if err != nil {
		return err
	}
	release, err := x.s.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := x.each(ctx, blobs, x.importBlob); err != nil {
		return err
	}
	mediaType := encoding.MediaType(m.Format)
	if format != "" && format != m.Format {
		_, img, err := x.s.Decode(manifestBytes)
		if err != nil {
			return err
		}
		var config []byte
		e := &store.Entry{Name: to, Format: m.Format, Image: img, ManifestBytes: manifestBytes}
		if mediaType, manifestBytes, config, err = x.s.Encode(ctx, e, format); err != nil {
			return err
		}
		if _, _, err := x.s.PutBytes(ctx, config); err != nil {
			return err
		}
	}
	x.report.Digest, err = x.s.PutRaw(ctx, to, mediaType, manifestBytes, store.PutOptions{})
	return err
}

// Export copies a model of s to Ollama's store, in the ollama encoding. A model that came from Ollama keeps its
// manifest. Export hard-links, clones or copies blobs, in this order of preference. A hard-linked blob stays read-only
// in both stores; Ollama replaces blobs and never modifies them, so this does not affect it. The manifest is written
// last, atomically.
func (o *Ollama) Export(
	ctx context.Context, s *store.Store, e *store.Entry, to ollama.Name, opts Options,
) (*Report, error) {
	x := &transfer{s: s, o: o, progress: opts.Progress}
	if err := x.export(ctx, e, to); err != nil {
		return nil, fmt.Errorf("copy %s to %s: %w", e.Name, to, err)
	}
	return &x.report, nil
}

func (x *transfer) export(ctx context.Context, e *store.Entry, to ollama.Name) error {
	release, err := x.s.Lock(ctx) // keeps collections from removing blobs during the copy
	if err != nil {
		return err
	}
	defer release()
	if err := x.s.CheckPresent(e, true); err != nil {
		return err
	}
	_, manifestBytes, config, err := x.s.Encode(ctx, e, manifest.FormatOllama)
	if err != nil {
		return err
	}
	blobs, err := manifest.Blobs(manifestBytes)
	if err != nil {
		return err
	}
	if err := x.o.mkdir(filepath.Join(x.o.root, blobsDir)); err != nil {
		return fmt.Errorf("%w (set OLLAMA_MODELS to use another folder)", err)
	}
	if _, _, err := x.s.PutBytes(ctx, config); err != nil { // the next collection removes a new config
		return err
	}
	if err := x.each(ctx, blobs, x.exportBlob); err != nil {
		return err
	}
	x.touch()
	if err := disk.SyncDir(filepath.Join(x.o.root, blobsDir)); err != nil {
		return err
	}
	if err := x.o.put(to, manifestBytes); err != nil {
		return err
	}
	x.report.Digest = digest.FromBytes(manifestBytes)
	return nil
}

// transfer is the state of one import or export.
type transfer struct {
	s        *store.Store
	o        *Ollama
	progress func(done, total int64)

	mu       sync.Mutex
	report   Report
	done     int64
	total    int64
	exported []string  // blobs in Ollama's store that a manifest may not refer to yet
	touched  time.Time // when the exported blobs' modification times were last set
}

// each calls handle for blobs, several at a time. handle returns the field of the report that counts the blob.
func (x *transfer) each(
	ctx context.Context, blobs []ocispec.Descriptor, handle func(context.Context, ocispec.Descriptor) (*int64, error),
) error {
	for _, b := range blobs {
		x.total += b.Size
	}
	x.touched = time.Now()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(exchangeWorkers)
	for _, b := range blobs {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			way, err := handle(ctx, b)
			if err != nil {
				return err
			}
			x.mu.Lock()
			defer x.mu.Unlock()
			*way += b.Size
			return nil
		})
	}
	return g.Wait()
}

// importBlob copies one of Ollama's blobs to the store.
func (x *transfer) importBlob(ctx context.Context, b ocispec.Descriptor) (*int64, error) {
	if x.s.CheckBlob(b.Digest, b.Size) == nil {
		x.addProgress(b.Size)
		return &x.report.Present, nil
	}
	path := x.o.blobPath(b.Digest)
	src, err := place.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("blob %s of Ollama: %w", path, manifest.ErrBlobMissing)
	}
	if err != nil {
		return nil, err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() != b.Size {
		return nil, fmt.Errorf("blob %s of Ollama is not a file of %d bytes: %w", path, b.Size, manifest.ErrCorrupt)
	}
	f, err := x.s.NewTemp(store.PartialPrefix + "*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name()) // no effect after the rename
	defer f.Close()
	if info.Mode().Perm() == 0o444 && disk.LinkOver(path, f.Name(), info) {
		if err := x.hash(ctx, io.Discard, src, b.Digest); err != nil {
			return nil, err
		}
		if err := atomicfile.Rename(f.Name(), x.s.BlobPath(b.Digest)); err != nil {
			return nil, err
		}
		x.s.NoteWritten(b.Digest)
		return &x.report.Linked, nil
	}
	way, err := x.fill(ctx, f, src, b.Digest)
	if err != nil {
		return nil, err
	}
	if way == &x.report.Cloned {
		if err := x.hash(ctx, io.Discard, f, b.Digest); err != nil {
			return nil, err
		}
	}
	if err := disk.Publish(f, 0o444, x.s.BlobPath(b.Digest)); err != nil {
		return nil, err
	}
	x.s.NoteWritten(b.Digest)
	return way, nil
}

// exportBlob copies one of the store's blobs to Ollama. Until it is complete, its name marks it as unfinished to
// Ollama.
func (x *transfer) exportBlob(ctx context.Context, b ocispec.Descriptor) (*int64, error) {
	path := x.o.blobPath(b.Digest)
	now := time.Now()
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && info.Size() == b.Size && os.Chtimes(path, now, now) == nil {
		x.addProgress(b.Size)
		x.addExported(path)
		return &x.report.Present, nil
	}
	if err := x.s.CheckBlob(b.Digest, b.Size); err != nil {
		return nil, err
	}
	src, err := x.s.OpenBlob(b.Digest)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	info, err = src.Stat()
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), partialPattern)
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if x.o.ownedLike(info) && disk.LinkOver(src.Name(), f.Name(), info) && os.Chtimes(f.Name(), now, now) == nil {
		x.addProgress(b.Size)
		err := atomicfile.Rename(f.Name(), path)
		x.addExported(path)
		return &x.report.Linked, err
	}
	way, err := x.fill(ctx, f, src, b.Digest)
	if err != nil {
		return nil, err
	}
	if way == &x.report.Cloned {
		x.addProgress(b.Size)
	}
	x.o.own(f.Name())
	err = disk.Publish(f, 0o644, path)
	x.addExported(path)
	return way, err
}

// fill fills the empty file f with the content of src. It clones src, or else copies it and verifies the digest.
func (x *transfer) fill(ctx context.Context, f, src *os.File, d digest.Digest) (*int64, error) {
	if disk.Reflink(f, src) == nil {
		return &x.report.Cloned, nil
	}
	return &x.report.Copied, x.hash(ctx, f, src, d)
}

// hash copies a file from its beginning, verifies its digest and reports progress.
func (x *transfer) hash(ctx context.Context, to io.Writer, from *os.File, d digest.Digest) error {
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for at := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := from.ReadAt(buf, at)
		h.Write(buf[:n])
		if _, err := to.Write(buf[:n]); err != nil {
			return err
		}
		at += int64(n)
		x.addProgress(int64(n))
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if got := digest.NewDigest(digest.SHA256, h); got != d {
		return fmt.Errorf("%s: %w", from.Name(), manifest.Corrupt(d, got))
	}
	return nil
}

// addProgress counts n more bytes as done.
func (x *transfer) addProgress(n int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.done += n
	if x.progress != nil {
		x.progress(x.done, x.total)
	}
}

// addExported records a blob that no manifest may refer to yet. It keeps the modification times of these blobs recent,
// because Ollama deletes unreferenced blobs older than an hour.
func (x *transfer) addExported(path string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.exported = append(x.exported, path)
	if time.Since(x.touched) > 10*time.Minute {
		x.touch()
	}
}

func (x *transfer) touch() {
	x.touched = time.Now()
	for _, path := range x.exported {
		_ = os.Chtimes(path, x.touched, x.touched)
	}
}
