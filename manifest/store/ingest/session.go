package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/opencontainers/go-digest"
)

// Session persists the state of an unfinished upload session, so that a later run can resume it. It must not be used by
// several goroutines at once.
//
// The caller holds [store.Store.Lock] from OpenSession to Close or Remove. Collections keep the state for [Age] after
// it was last written.
type Session struct {
	dir     string
	lock    *flock.Flock
	written bool
}

const (
	sessionPrefix = "push-" // followed by the key's hex digits
	sessionState  = "state"
)

// maxSessionSize limits the state, which is a URL and a few numbers.
const maxSessionSize = 64 << 10

// OpenSession opens the session with this key, a hash of everything that determines what is uploaded where. If another
// goroutine or process has it open, the error is a [manifest.ErrBusy]: two uploads never share a session.
func OpenSession(s *store.Store, key digest.Digest) (*Session, error) {
	if !manifest.ValidDigest(key) {
		return nil, fmt.Errorf("open upload session: key %q is not a sha256 digest", manifest.Clip(string(key)))
	}
	x := &Session{dir: s.Path(store.IngestDir, sessionPrefix+key.Encoded())}
	if err := x.acquire(); err != nil {
		return nil, fmt.Errorf("open upload session: %w", err)
	}
	return x, nil
}

// acquire creates the folder and locks it.
func (x *Session) acquire() (err error) {
	x.lock, err = lock.Take(context.Background(), x.path(ingestLock), lock.Options{
		Folder: func() error { return makeIngest(x.dir) }, NoWait: true,
	})
	if err != nil {
		return err
	}
	_, missing := os.Stat(x.path(sessionState))
	x.written = missing == nil
	return nil
}

func (x *Session) path(name string) string { return filepath.Join(x.dir, name) }

// Read returns the state that was last written, or nil if there is none.
func (x *Session) Read() ([]byte, error) {
	b, err := disk.ReadLimited(x.path(sessionState), maxSessionSize)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, manifest.ErrTooLarge) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read upload session: %w", err)
	}
	return b, nil
}

// Write atomically replaces the state. It does not sync: losing the state in a system crash only costs time. Only the
// owner can read the file, because the URL of an upload session may be all that is needed to use it.
func (x *Session) Write(b []byte) error {
	next := x.path(sessionState + "-next")
	err := writeFile(next, b, 0o600)
	if err == nil {
		err = atomicfile.Rename(next, x.path(sessionState))
	}
	if err != nil {
		return fmt.Errorf("write upload session: %w", err)
	}
	x.written = true
	return nil
}

// Close keeps the state for a later run. If nothing was written, it removes the folder.
func (x *Session) Close() {
	if x.lock == nil {
		return
	}
	if !x.written {
		x.Remove()
		return
	}
	x.lock.Unlock()
	x.lock = nil
}

// Remove ends the session and removes its state. After Close or Remove it is a no-op.
func (x *Session) Remove() {
	if x.lock == nil {
		return
	}
	removed := removeIngest(x.dir)
	x.lock.Unlock()
	x.lock = nil
	// Windows cannot remove an open lock file. Elsewhere the path may belong to the next holder by now.
	if !removed {
		os.Remove(x.path(ingestLock))
		os.Remove(x.dir)
	}
}

// DropSession removes the session with this key, if it exists and is not open.
func DropSession(s *store.Store, key digest.Digest) {
	if !manifest.ValidDigest(key) {
		return
	}
	if _, err := os.Stat(s.Path(store.IngestDir, sessionPrefix+key.Encoded())); err != nil {
		return
	}
	if x, err := OpenSession(s, key); err == nil {
		x.Remove()
	}
}
