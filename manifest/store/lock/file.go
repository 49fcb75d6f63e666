package lock

import (
	"context"
	"os"
	"runtime"

	"github.com/gofrs/flock"
)

// Take acquires a lock file that its holder unlinks at the end. While another holder has it, Take waits, after
// calling waiting once (may be nil). A lock on a file that a previous holder has unlinked is void, so Take tries
// again.
func Take(ctx context.Context, path string, waiting func()) (*flock.Flock, error) {
	for {
		l := flock.New(path, flock.SetPermissions(0o644))
		ok, err := l.TryLock()
		if err == nil && !ok {
			if waiting != nil {
				waiting()
				waiting = nil
			}
			ok, err = l.TryLockContext(ctx, Retry)
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
