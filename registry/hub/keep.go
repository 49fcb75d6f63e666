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
	held, err := c.lock(f.ctx, file.etag)
	if err != nil {
		return nil, err
	}
	defer held.Unlock() //nolint:errcheck // closing it releases the lock
	if local, err := c.open(file.entry); local != nil || err != nil {
		return local, err
	}
	blob := c.blob(file.etag)
	if err := c.download(f, file, blob+".incomplete"); err != nil {
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
	return os.Open(blob)
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

// download fetches what a file lacks and checks the whole.
func (c cache) download(f *Folder, file *file, path string) error {
	to, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer to.Close()
	if file.sha256 == "" {
		data, err := f.small(file)
		if err == nil {
			err = to.Truncate(0)
		}
		if err == nil {
			_, err = to.WriteAt(data, 0)
		}
		if err != nil {
			return err
		}
		return to.Sync()
	}
	h := sha256.New()
	done, err := io.Copy(h, io.LimitReader(to, file.size))
	if err != nil {
		return err
	}
	if err := f.copyTo(io.MultiWriter(h, to), file, done); err != nil {
		return err
	}
	if sum := fmt.Sprintf("%x", h.Sum(nil)); sum != file.sha256 {
		err := checksumError(file.what(), sum, file.sha256)
		return errors.Join(err, to.Truncate(0)) // do not resume it
	}
	if err := to.Truncate(file.size); err != nil {
		return err
	}
	return to.Sync()
}

// copyTo copies a file from an offset to its end, with requests in flight.
func (f *Folder) copyTo(w io.Writer, file *file, offset int64) error {
	r := readahead.New(f.ctx, f.fetch, readahead.Options{Memory: f.c.opts.Memory / maxKeeping, Connections: 4})
	defer r.Close()
	r.Expect([]readahead.Range{{File: file.path, Begin: offset, End: file.size}})
	buf := make([]byte, 256<<10)
	for offset < file.size {
		p := buf[:min(int64(len(buf)), file.size-offset)]
		if err := r.ReadAt(f.ctx, file.path, file.size, p, offset); err != nil {
			return err
		}
		if _, err := w.Write(p); err != nil {
			return err
		}
		offset += int64(len(p))
	}
	return nil
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
	if have, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(have)) == c.commit {
		return nil
	}
	return os.WriteFile(path, []byte(c.commit), 0o644)
}
