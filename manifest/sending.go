package manifest

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"

	"github.com/gofrs/flock"
	"github.com/ingotml/ingot/limits"
)

// sendingPrefix begins the names of the files in ingest/ that uploads are written to. The rest of the name is random,
// and the lock file beside it has the suffix partLockSuffix.
const sendingPrefix = "sending-"

// sending is the file of an upload while it is written. Its lock file protects it from collections, so its writer does
// not need the store's lock and a slow client keeps nobody waiting: a collection removes the file only if nobody holds
// that lock, which is so when the writer's process has died. A sending belongs to one goroutine.
type sending struct {
	s     *Store
	lock  *flock.Flock
	f     *os.File
	room  *room
	size  int64 // bytes written
	owned bool  // the file is still under its temporary name
}

// newSending makes the file. The caller ends it with end.
func (s *Store) newSending(ctx context.Context, o UploadOptions) (*sending, error) {
	if err := os.MkdirAll(s.path(ingestDir), 0o755); err != nil { // a layout that another tool made has no such folder
		return nil, err
	}
	path := s.path(ingestDir, sendingPrefix+strings.ToLower(rand.Text()))
	x := &sending{s: s}
	var err error
	if x.lock, err = takeLock(ctx, path+partLockSuffix, nil); err != nil { // before the file, so that it is never without
		return nil, err
	}
	if x.f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
		x.end()
		return nil, err
	}
	x.owned = true
	x.room = s.newRoom(x.f, o.KeepFree)
	if err := x.room.extend(o.Size); err != nil {
		x.end()
		return nil, err
	}
	if o.Size >= preallocateFrom {
		if err := preallocate(x.f, o.Size); err != nil {
			x.end()
			return nil, err
		}
	}
	return x, nil
}

// Write implements io.Writer. It fails with a [*SpaceError] before the disk has less room than the upload has to leave.
func (x *sending) Write(p []byte) (int, error) {
	if end := x.size + int64(len(p)); end > x.room.promised {
		if err := x.room.extend(end + limits.UploadSpaceStep); err != nil {
			return 0, err
		}
	}
	n, err := x.f.Write(p)
	x.size += int64(n)
	return n, err
}

// publish makes the file durable and gives it its name. It holds the store's lock for the rename alone.
func (x *sending) publish(ctx context.Context, path string) error {
	if err := syncAndClose(x.f, 0o444); err != nil {
		return err
	}
	release, err := x.s.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := rename(x.f.Name(), path); err != nil {
		return err
	}
	x.owned = false
	return syncDir(x.s.path(ingestDir))
}

// end removes what has not been published, and the lock.
func (x *sending) end() {
	if x.room != nil {
		x.room.release()
	}
	if x.f != nil {
		x.f.Close() // may be closed already, by publish
	}
	if x.owned {
		os.Remove(x.f.Name())
	}
	dropLock(x.lock)
}

// sendingName gives the name of an upload's file from that of the file or of its lock file.
func sendingName(name string) string { return strings.TrimSuffix(name, partLockSuffix) }

// beingSent reports whether a process writes the upload at present. It makes no file.
func (s *Store) beingSent(l leftover) bool {
	lock := flock.New(s.path(ingestDir, sendingName(l.name)+partLockSuffix), flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryLock()
	if free {
		lock.Unlock()
	}
	if errors.Is(err, os.ErrNotExist) {
		return false // it has just ended, or lost its lock file to somebody's rm
	}
	return !free
}

// dropSending removes the file of an upload whose writer has died.
func (s *Store) dropSending(l leftover) {
	path := s.path(ingestDir, sendingName(l.name))
	lock := flock.New(path+partLockSuffix, flock.SetPermissions(0o644))
	if free, err := lock.TryLock(); err != nil || !free {
		return
	}
	os.Remove(path)
	dropLock(lock)
}
