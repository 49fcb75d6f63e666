package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest/verified"
)

// local is what is known of a file in the hub's cache.
type local struct {
	mu    sync.Mutex
	path  string // "" = it is not there, or not usable
	stamp string // of the file when its bytes were compared with its etag; "" = they were not
	known bool   // that no copy is usable
}

// remembered is the size from which a file's digest is remembered over the end of the program.
const remembered = 1 << 20

// noticed is the size from which a user should know what takes so long.
const noticed = 1 << 30

// openLocal opens a file of the cache that has the published bytes, or returns nil. With a network, a copy that is
// damaged is one that is not there.
func (f *Folder) openLocal(file *file) (*os.File, error) {
	l := &file.local
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known {
		return nil, nil
	}
	for _, path := range f.cache.places(file.entry) {
		opened, err := f.openAt(file, path)
		if err != nil && !f.c.opts.Offline && !f.c.opts.Strict && f.ctx.Err() == nil {
			_ = f.c.skipped(fmt.Sprintf("%v; reading %s from the hub instead", err, file.what()))
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w; remove it and download it again", file.what(), err)
		}
		if opened != nil {
			return opened, nil
		}
	}
	l.known = true
	return nil, nil
}

// openAt opens a copy and compares it with its hash, unless this was done. The caller holds the lock.
func (f *Folder) openAt(file *file, path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != file.size {
		return nil, nil
	}
	opened, err := place.Open(path)
	if err != nil {
		return nil, err
	}
	usable, err := f.compare(file, path, opened)
	if err == nil && usable {
		return opened, nil
	}
	return nil, errors.Join(err, opened.Close())
}

// compare reports whether an open copy has the bytes that its etag names. Without a network, a copy whose name says
// nothing is used as any folder is.
func (f *Folder) compare(file *file, path string, opened *os.File) (bool, error) {
	before, err := opened.Stat()
	if err != nil {
		return false, err
	}
	l, hashes := &file.local, newContent(file.etag, file.size)
	switch {
	case hashes == nil:
		l.path = path
		return f.c.opts.Offline, nil
	case l.stamp != "" && l.stamp == verified.Stamp(before):
		return true, nil
	case f.c.verified().Has(before, path, file.etag):
		l.path, l.stamp = path, verified.Stamp(before)
		return true, nil
	}
	if file.size >= noticed {
		f.c.cacheNoted.Do(func() {
			f.c.opts.Notice(fmt.Sprintf("%s: comparing files of the hub's cache with their hashes, once", f.name))
		})
	}
	if err := hashes.read(f.ctx, opened); err != nil {
		return false, err
	}
	if _, err := opened.Seek(0, 0); err != nil {
		return false, err
	}
	if hashes.check(path) != nil {
		return false, fmt.Errorf("%s: the file of the hub's cache is damaged: %w from its name", path, ErrChecksum)
	}
	after, err := opened.Stat()
	if err != nil {
		return false, err
	}
	if verified.Stamp(after) != verified.Stamp(before) {
		return false, fmt.Errorf("%s: it changed while it was read; run this again", path)
	}
	l.path, l.stamp = path, verified.Stamp(after)
	return true, nil
}

func (c *Client) verified() verified.Records { return verified.Records(c.opts.Verified) }

// checkLocal checks that the files that were read from the cache are still those that were compared, and remembers
// them.
func (f *Folder) checkLocal() error {
	for _, name := range f.names {
		if err := f.recheck(f.files[name]); err != nil {
			return err
		}
	}
	return nil
}

func (f *Folder) recheck(file *file) error {
	l := &file.local
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stamp == "" {
		return nil
	}
	info, err := os.Stat(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // what was opened stays what it was
	}
	if err != nil {
		return err
	}
	if verified.Stamp(info) != l.stamp { // perhaps only its links or its rights
		again, err := f.openAt(file, l.path)
		switch {
		case errors.Is(err, ErrChecksum), err == nil && again == nil:
			f.differ.Store(true)
			return fmt.Errorf("%s: %w while it was read: %s has other bytes now", file.what(), ErrChanged, l.path)
		case err != nil:
			return err
		}
		_ = again.Close()
	}
	if file.size >= remembered {
		f.c.verified().Add(info, l.path, file.etag)
	}
	return nil
}

// kept takes a file that was just downloaded and compared.
func (l *local) kept(path string, opened *os.File, e entry) error {
	info, err := opened.Stat()
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.path, l.known = path, false
	if newContent(e.etag, e.size) != nil {
		l.stamp = verified.Stamp(info)
	}
	return nil
}
