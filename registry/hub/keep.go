package hub

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/ingotml/ingot/registry/hub/readahead"
)

// keep downloads a file into the cache, as huggingface_hub does it: into blobs/ETAG.incomplete under the lock of the
// blob, then under its name, then linked from the snapshot. An interrupted download is resumed.
func (c cache) keep(f *Folder, file *file) (*os.File, error) {
	if c.dir == "" {
		return nil, fmt.Errorf("%s: --keep-source needs the cache of the Hugging Face hub; set HF_HUB_CACHE to a folder, "+
			"and use a repository of %s", file.what(), HuggingFace)
	}
	name := blobName(file.entry, c.commit)
	held, err := c.lock(f.ctx, name)
	if err != nil {
		return nil, err
	}
	defer held.Unlock() //nolint:errcheck // closing it releases the lock
	if opened, err := f.openLocal(file); opened != nil || err != nil {
		return opened, err
	}
	blob := c.blob(name)
	resumed, err := f.download(file, blob+".incomplete")
	if errors.Is(err, ErrChecksum) && resumed { // what was there may have been no beginning of it
		_, err = f.download(file, blob+".incomplete")
	}
	if err != nil {
		return nil, err
	}
	if err := os.Rename(blob+".incomplete", blob); err != nil {
		return nil, err
	}
	if err := c.link(file.entry, blob); err != nil {
		return nil, err
	}
	if err := c.writeRef(f.name.Revision); err != nil {
		return nil, err
	}
	opened, err := os.Open(blob)
	if err != nil {
		return nil, err
	}
	return opened, file.local.kept(blob, opened, file.entry)
}

// blobName returns the name of a file's blob: its etag. One for which nothing is published gets a name that is no hash
// of a content.
func blobName(e entry, commit string) string {
	if e.etag != "" {
		return e.etag
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(commit+"/"+e.path)))[:32]
}

// lock takes the lock file that huggingface_hub uses for a blob.
func (c cache) lock(ctx context.Context, etag string) (*flock.Flock, error) {
	path := filepath.Join(c.root, ".locks", filepath.Base(c.dir), etag+".lock")
	for _, dir := range []string{filepath.Dir(path), filepath.Join(c.dir, "blobs")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	l := flock.New(path)
	if _, err := l.TryLockContext(ctx, lock.Retry); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// download fetches what a file lacks and checks the whole. It reports whether some of it was there.
func (f *Folder) download(file *file, path string) (resumed bool, err error) {
	to, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return false, err
	}
	defer to.Close()
	h := newContent(file.etag, file.size)
	if h == nil {
		h = new(content)
		if err := to.Truncate(0); err != nil { // what is there cannot be checked
			return false, err
		}
	}
	begin, err := io.Copy(h, io.LimitReader(to, file.size))
	if err == nil {
		err = f.complete(file, to, h, begin)
	}
	return begin > 0, err
}

// complete fetches a file from an offset, after what h has hashed.
func (f *Folder) complete(file *file, to *os.File, h *content, begin int64) error {
	both := io.MultiWriter(h, to)
	done, err := f.copyTo(both, file, begin)
	if errors.Is(err, ErrNoRanges) {
		err = file.stream(f.ctx, both, done)
	}
	if err != nil {
		return err
	}
	if len(h.hashes) > 0 {
		if err := h.check(file.what()); err != nil {
			f.differ.Store(f.differ.Load() || begin == 0)
			return errors.Join(err, to.Truncate(0)) // do not resume it
		}
	}
	if err := to.Truncate(file.size); err != nil {
		return err
	}
	return to.Sync()
}

// copyTo copies a file from an offset to its end, with requests in flight. It returns the offset that it reached.
func (f *Folder) copyTo(w io.Writer, file *file, offset int64) (int64, error) {
	r := readahead.New(f.ctx, f.fetch, readahead.Options{Memory: f.c.opts.Memory / maxKeeping, Connections: 4})
	defer r.Close()
	r.Expect([]readahead.Range{{File: file.path, Begin: offset, End: file.size}})
	buf := make([]byte, 256<<10)
	for offset < file.size {
		p := buf[:min(int64(len(buf)), file.size-offset)]
		if err := r.ReadAt(f.ctx, file.path, file.size, p, offset); err != nil {
			return offset, err
		}
		if _, err := w.Write(p); err != nil {
			return offset, err
		}
		offset += int64(len(p))
	}
	return offset, nil
}

// maxKeeping is the number of files that package safetensors opens at a time, each of which is downloaded then.
const maxKeeping = 16

// link makes the snapshot's link to a blob, or a copy where there are no links.
func (c cache) link(e entry, blob string) error {
	at := c.snapshot(e.path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	to, err := filepath.Rel(filepath.Dir(at), blob)
	if err != nil {
		return err
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) { // an old link that leads nowhere
		return err
	}
	if err := os.Symlink(to, at); err != nil {
		return os.Link(blob, at) // as on Windows without the right to make symbolic links
	}
	return nil
}

// writeRef records which commit a branch or tag is.
func (c cache) writeRef(revision string) error {
	if revision == "" {
		revision = "main"
	}
	if isCommit(revision) {
		return nil
	}
	path := filepath.Join(c.dir, "refs", filepath.FromSlash(revision))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if have, err := place.ReadFile(path, 1<<10); err == nil && strings.TrimSpace(string(have)) == c.commit {
		return nil
	}
	return os.WriteFile(path, []byte(c.commit), 0o644)
}
