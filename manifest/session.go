package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"github.com/opencontainers/go-digest"
)

// Session is a note about an unfinished upload, for the run that takes it up. It belongs to one goroutine.
//
// Contract: the caller holds [Store.Lock] from OpenSession to Close or Remove. Collections keep a note for [IngestAge]
// after it was last written.
type Session struct {
	dir     string
	lock    *flock.Flock
	written bool
}

const (
	sessionPrefix = "push-" // and the key's hex digits
	sessionState  = "state"
)

// More than an address and a few numbers.
const maxSessionSize = 64 << 10

// OpenSession opens the note with this key, a hash of all that decides what is uploaded where. It is an [ErrBusy] when
// another goroutine or process has it open: two uploads never share a note.
func (s *Store) OpenSession(key digest.Digest) (*Session, error) {
	if !validDigest(key) {
		return nil, fmt.Errorf("open upload session: key %q is not a sha256 digest", clip(string(key)))
	}
	x := &Session{dir: s.path(ingestDir, sessionPrefix+key.Encoded())}
	if err := x.take(); err != nil {
		return nil, fmt.Errorf("open upload session: %w", err)
	}
	return x, nil
}

// take makes the folder and locks it. A lock file that its last holder removed does not count.
func (x *Session) take() error {
	for {
		if err := makeIngest(x.dir); err != nil {
			return err
		}
		l := flock.New(x.path(ingestLock), flock.SetPermissions(0o644))
		ok, err := l.TryLock()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !ok {
			return &BusyError{Path: x.path(ingestLock)}
		}
		held, err := l.Stat()
		there, errThere := os.Stat(x.path(ingestLock))
		if err == nil && errThere == nil && os.SameFile(held, there) {
			x.lock = l
			_, err := os.Stat(x.path(sessionState))
			x.written = err == nil
			return nil
		}
		l.Unlock()
	}
}

func (x *Session) path(name string) string { return filepath.Join(x.dir, name) }

// Read gives what was last written, nil when nothing was.
func (x *Session) Read() ([]byte, error) {
	b, err := readLimited(x.path(sessionState), maxSessionSize)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrTooLarge) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read upload session: %w", err)
	}
	return b, nil
}

// Write replaces the note in one step. It is not synced: a note that a crash of the machine takes costs time only. Others
// cannot read it, since the addresses of uploads may be all that it takes to use them.
func (x *Session) Write(b []byte) error {
	next := x.path(sessionState + "-next")
	err := os.WriteFile(next, b, 0o600)
	if err == nil {
		err = rename(next, x.path(sessionState))
	}
	if err != nil {
		return fmt.Errorf("write upload session: %w", err)
	}
	x.written = true
	return nil
}

// Close leaves the note to a later run. Without one, nothing stays.
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

// Remove ends the session and leaves nothing. A second Remove, and a Close after it, does nothing.
func (x *Session) Remove() {
	if x.lock == nil {
		return
	}
	gone := removeIngest(x.dir)
	x.lock.Unlock()
	x.lock = nil
	if !gone { // on systems that keep an open file; else what is there now is of the next holder
		os.Remove(x.path(ingestLock))
		os.Remove(x.dir)
	}
}

// DropSession removes the note with this key, if there is one that nobody has open.
func (s *Store) DropSession(key digest.Digest) {
	if !validDigest(key) {
		return
	}
	if _, err := os.Stat(s.path(ingestDir, sessionPrefix+key.Encoded())); err != nil {
		return
	}
	if x, err := s.OpenSession(key); err == nil {
		x.Remove()
	}
}
