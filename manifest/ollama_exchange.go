package manifest

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

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
)

// ExchangeOptions are those of [OllamaStore.Import] and [OllamaStore.Export].
type ExchangeOptions struct {
	Format   string                  // of an import: the encoding to store; empty keeps the manifest as it is
	Progress func(done, total int64) // bytes; nil = none
}

// Exchange tells what an import or export did, in bytes of blobs.
type Exchange struct {
	Digest  digest.Digest // of the manifest
	Present int64         // were there already
	Linked  int64         // share the file with the other store
	Cloned  int64         // share the space until one of the two changes
	Copied  int64
}

// Blobs of one exchange that are handled at a time.
const exchangeWorkers = 4

// Import brings a model of Ollama into a store. Its manifest is kept byte for byte unless the options ask for an encoding. Models that
// are not made of tensors are an [ErrUnknownManifest].
//
// A blob is hashed on its way, whichever way that is. It is shared by hard link only when its file is read-only already, as one
// is that Export linked: Ollama's own are writable, and a store's blobs are mapped by those who run them. Else its space
// is shared where the file system can, else it is copied.
func (o *OllamaStore) Import(ctx context.Context, from OllamaName, s *Store, to Name, opts ExchangeOptions) (*Exchange, error) {
	manifest, err := o.manifest(from)
	if err != nil {
		return nil, err
	}
	x := &exchange{s: s, o: o, progress: opts.Progress}
	if err := x.importAs(ctx, manifest, to, opts.Format); err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return &x.report, nil
}

func (x *exchange) importAs(ctx context.Context, manifest []byte, to Name, format string) error {
	m, err := parseManifest(manifest)
	if err != nil {
		return err
	}
	blobs, err := Blobs(manifest)
	if err != nil {
		return err
	}
	release, err := x.s.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := x.each(ctx, blobs, x.take); err != nil {
		return err
	}
	mediaType := mediaTypeOf(m.format)
	if format != "" && format != m.format {
		_, img, err := x.s.decodeRaw(manifest)
		if err != nil {
			return err
		}
		var config []byte
		e := &Entry{Name: to, Format: m.format, Image: img, ManifestBytes: manifest}
		if mediaType, manifest, config, err = x.s.Encode(ctx, e, format); err != nil {
			return err
		}
		if _, _, err := x.s.PutBytes(ctx, config); err != nil {
			return err
		}
	}
	x.report.Digest, err = x.s.PutRaw(ctx, to, mediaType, manifest, PutOptions{})
	return err
}

// Export gives Ollama a model of a store, in the encoding that it reads; one that came from Ollama keeps its manifest. Blobs are
// shared by hard link, else in space, else copied; a linked one stays read-only in both, which Ollama, who replaces blobs and
// never changes them, does not notice. The manifest comes last, in one step.
func (o *OllamaStore) Export(ctx context.Context, s *Store, e *Entry, to OllamaName, opts ExchangeOptions) (*Exchange, error) {
	x := &exchange{s: s, o: o, progress: opts.Progress}
	if err := x.export(ctx, e, to); err != nil {
		return nil, fmt.Errorf("copy %s to %s: %w", e.Name, to, err)
	}
	return &x.report, nil
}

func (x *exchange) export(ctx context.Context, e *Entry, to OllamaName) error {
	release, err := x.s.Lock(ctx) // nothing is collected from under the copy
	if err != nil {
		return err
	}
	defer release()
	if err := x.s.CheckPresent(e, true); err != nil {
		return err
	}
	_, manifest, config, err := x.s.Encode(ctx, e, FormatOllama)
	if err != nil {
		return err
	}
	blobs, err := Blobs(manifest)
	if err != nil {
		return err
	}
	if err := x.o.mkdir(filepath.Join(x.o.root, ollamaBlobs)); err != nil {
		return fmt.Errorf("%w (OLLAMA_MODELS names another folder)", err)
	}
	if _, _, err := x.s.PutBytes(ctx, config); err != nil { // a new one goes with the next collection
		return err
	}
	if err := x.each(ctx, blobs, x.give); err != nil {
		return err
	}
	x.touch()
	if err := syncDir(filepath.Join(x.o.root, ollamaBlobs)); err != nil {
		return err
	}
	if err := x.o.put(to, manifest); err != nil {
		return err
	}
	x.report.Digest = digest.FromBytes(manifest)
	return nil
}

// exchange is one import or export at work.
type exchange struct {
	s        *Store
	o        *OllamaStore
	progress func(done, total int64)

	mu      sync.Mutex
	report  Exchange
	done    int64
	total   int64
	given   []string  // blobs in Ollama's store that no manifest may name yet
	touched time.Time // when those were made young last
}

// each handles blobs, several at a time. handle says in which way it did, by the report's field.
func (x *exchange) each(ctx context.Context, blobs []ocispec.Descriptor, handle func(context.Context, ocispec.Descriptor) (*int64, error)) error {
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

// take brings one of Ollama's blobs into the store.
func (x *exchange) take(ctx context.Context, b ocispec.Descriptor) (*int64, error) {
	if x.s.checkBlob(b.Digest, b.Size) == nil {
		x.moved(b.Size)
		return &x.report.Present, nil
	}
	path := x.o.blobPath(b.Digest)
	src, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("blob of Ollama %s: %w", path, ErrBlobMissing)
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
		return nil, fmt.Errorf("blob of Ollama %s is no file of %d bytes: %w", path, b.Size, ErrCorrupt)
	}
	f, err := x.s.newTemp(partialPrefix + "*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name()) // gone already when it got its name
	defer f.Close()
	if info.Mode().Perm() == 0o444 && linkTo(path, f.Name(), info) {
		if err := x.hash(ctx, io.Discard, src, b.Digest); err != nil {
			return nil, err
		}
		return &x.report.Linked, rename(f.Name(), x.s.BlobPath(b.Digest))
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
	return way, publish(f, 0o444, x.s.BlobPath(b.Digest))
}

// give brings one of the store's blobs to Ollama, under a name that Ollama takes for an unfinished one until it is whole.
func (x *exchange) give(ctx context.Context, b ocispec.Descriptor) (*int64, error) {
	path := x.o.blobPath(b.Digest)
	now := time.Now()
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() == b.Size && os.Chtimes(path, now, now) == nil {
		x.moved(b.Size)
		x.gave(path)
		return &x.report.Present, nil
	}
	if err := x.s.checkBlob(b.Digest, b.Size); err != nil {
		return nil, err
	}
	src, err := x.s.OpenBlob(b.Digest)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ollamaPartial)
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if x.o.ownedLike(info) && linkTo(src.Name(), f.Name(), info) && os.Chtimes(f.Name(), now, now) == nil {
		x.moved(b.Size)
		err := rename(f.Name(), path)
		x.gave(path)
		return &x.report.Linked, err
	}
	way, err := x.fill(ctx, f, src, b.Digest)
	if err != nil {
		return nil, err
	}
	if way == &x.report.Cloned {
		x.moved(b.Size)
	}
	x.o.own(f.Name())
	err = publish(f, 0o644, path)
	x.gave(path)
	return way, err
}

// ollamaPartial is the pattern of files that are being written to Ollama's blobs: it deletes those of such names that have not
// been written to for an hour.
const ollamaPartial = "sha256-ingot-*"

// linkTo makes path, which is an empty file, another name of a file. It says whether it could; else path is as it was.
func linkTo(file, path string, info fs.FileInfo) bool {
	link := path + "-link"
	if os.Link(file, link) != nil {
		return false
	}
	if got, err := os.Lstat(link); err == nil && os.SameFile(got, info) && os.Rename(link, path) == nil {
		return true
	}
	os.Remove(link) // a link to a link
	return false
}

// fill gives an empty file the contents of another one: it shares the space, or copies and compares the digest.
func (x *exchange) fill(ctx context.Context, f, src *os.File, d digest.Digest) (*int64, error) {
	if reflink(f, src) == nil {
		return &x.report.Cloned, nil
	}
	return &x.report.Copied, x.hash(ctx, f, src, d)
}

// hash copies from a file, from its beginning, and compares the digest of what it read. Progress counts it.
func (x *exchange) hash(ctx context.Context, to io.Writer, from *os.File, d digest.Digest) error {
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
		x.moved(int64(n))
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if got := digest.NewDigest(digest.SHA256, h); got != d {
		return fmt.Errorf("%s: %w", from.Name(), corrupt(d, got))
	}
	return nil
}

// moved counts bytes that are done with.
func (x *exchange) moved(n int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.done += n
	if x.progress != nil {
		x.progress(x.done, x.total)
	}
}

// gave keeps what an export has given young until its manifest is there, however long that takes.
func (x *exchange) gave(path string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.given = append(x.given, path)
	if time.Since(x.touched) > 10*time.Minute {
		x.touch()
	}
}

func (x *exchange) touch() {
	x.touched = time.Now()
	for _, path := range x.given {
		_ = os.Chtimes(path, x.touched, x.touched)
	}
}

// put writes a manifest in one step. Its temporary file lies where Ollama clears up, if that is on the same file system.
func (o *OllamaStore) put(name OllamaName, manifest []byte) error {
	path, _ := o.find(name)
	if err := o.mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	err := o.putFrom(filepath.Join(o.root, ollamaBlobs), path, manifest)
	if err != nil {
		// blobs/ may be a link to another disk. Ollama looks for manifests four levels below manifests/ only.
		err = o.putFrom(filepath.Join(o.root, ollamaManifests), path, manifest)
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func (o *OllamaStore) putFrom(dir, path string, manifest []byte) error {
	f, err := os.CreateTemp(dir, ollamaPartial)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(manifest); err != nil {
		return err
	}
	o.own(f.Name())
	return publish(f, 0o644, path)
}

// What root writes into the store of Ollama's service has to belong to the service, which touches and removes it. So what is made
// there gets the owner of the store's folder, as far as that is allowed, and a file of another owner is not linked but copied.

func (o *OllamaStore) ownedLike(file fs.FileInfo) bool {
	root, err := os.Stat(o.root)
	return err == nil && sameOwner(root, file)
}

func (o *OllamaStore) own(path string) {
	if root, err := os.Stat(o.root); err == nil {
		chownLike(path, root)
	}
}

// mkdir makes a folder below the store's, and those between.
func (o *OllamaStore) mkdir(dir string) error {
	if isDir(dir) {
		return nil
	}
	if dir == o.root {
		return os.MkdirAll(dir, 0o755)
	}
	if err := o.mkdir(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	o.own(dir)
	return nil
}
