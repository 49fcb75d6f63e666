package manifest

import (
	"context"
	"os"
	"runtime"

	"github.com/gofrs/flock"
)

// takeLock takes a lock file that its holder removes in the end. While somebody else holds it, takeLock waits, and calls
// waiting, which may be nil, once. A file that its holder has removed since does not count.
func takeLock(ctx context.Context, path string, waiting func()) (*flock.Flock, error) {
	for {
		l := flock.New(path, flock.SetPermissions(0o644))
		ok, err := l.TryLock()
		if err == nil && !ok {
			if waiting != nil {
				waiting()
				waiting = nil
			}
			ok, err = l.TryLockContext(ctx, lockRetry)
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

// dropLock removes a lock file and lets go of it: in this order, so that nobody's file is removed but one's own. Windows
// removes no file that is open, and none that the next holder has opened.
func dropLock(l *flock.Flock) {
	if runtime.GOOS != "windows" {
		os.Remove(l.Path())
	}
	l.Unlock()
	if runtime.GOOS == "windows" {
		os.Remove(l.Path())
	}
}
