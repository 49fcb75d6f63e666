package lock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/gofrs/flock"
	"github.com/ingotml/ingot/internal/limits/place"
)

// Options say how Take acquires a lock file. The zero value waits, in a folder that stays.
type Options struct {
	// Folder creates the folder of the lock file, where holders remove it with the file. It is called before each attempt.
	Folder  func() error
	Waiting func() // called once before Take waits; may be nil
	NoWait  bool   // return a [*BusyError] instead of waiting
}

// Take acquires a lock file that its holder unlinks at the end. It waits while another holder has it. A lock on a file
// that a previous holder has unlinked is void, so Take tries again.
func Take(ctx context.Context, path string, o Options) (*flock.Flock, error) {
	for {
		if o.Folder != nil {
			if err := o.Folder(); err != nil {
				return nil, err
			}
		}
		l, err := open(path)
		if err != nil {
			return nil, err
		}
		ok, err := l.TryLock()
		if err == nil && !ok {
			if o.NoWait {
				return nil, &BusyError{Path: path}
			}
			if o.Waiting != nil {
				o.Waiting()
				o.Waiting = nil
			}
			ok, err = l.TryLockContext(ctx, Retry)
		}
		if o.Folder != nil && errors.Is(err, fs.ErrNotExist) {
			continue // a holder has removed the folder
		}
		if !ok {
			return nil, err
		}
		held, err := l.Stat()
		there, errThere := os.Stat(path)
		if err == nil && errThere == nil && os.SameFile(held, there) {
			return l, nil
		}
		l.Unlock()
	}
}

// Drop unlinks a lock file, then releases the lock: in this order it cannot unlink the next holder's file. Windows
// needs the opposite order, because it cannot remove an open file, including one that the next holder has opened.
func Drop(l *flock.Flock) {
	if runtime.GOOS != "windows" {
		os.Remove(l.Path())
	}
	l.Unlock()
	if runtime.GOOS == "windows" {
		os.Remove(l.Path())
	}
}

// open returns a handle of a lock file with its own file descriptor, so that goroutines exclude each other like
// processes. It is an error if a pipe, a folder or the like is in its place: opening one may wait forever.
func open(path string) (*flock.Flock, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w: remove it, no process has it locked", path, place.ErrNotRegular)
	}
	return flock.New(path, flock.SetPermissions(0o644), flock.SetFlag(os.O_CREATE|os.O_RDONLY|place.NonBlocking)), nil
}
