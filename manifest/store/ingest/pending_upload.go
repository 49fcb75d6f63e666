package ingest

import (
	"context"
	"crypto/rand"
	"os"
	"strings"

	"github.com/gofrs/flock"
	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/manifest/store/lock"
)

// sendingPrefix begins the names of the files in ingest/ that contain uploads in progress. A random suffix follows. The
// lock file has the same name with partLockSuffix.
const sendingPrefix = "sending-"

// pendingUpload is the file of an upload in progress. Its writer holds a lock file instead of the store's lock, so that
// a slow client does not block collections. A collection removes the file only if the lock file is free, which means
// that the writer's process has died. A pendingUpload must not be used by several goroutines at once.
type pendingUpload struct {
	s     *store.Store
	lock  *flock.Flock
	f     *os.File
	space *disk.Reservation
	size  int64 // bytes written
	owned bool  // the file still has its temporary name
}

// newPendingUpload creates the file. The caller must call end.
func newPendingUpload(ctx context.Context, s *store.Store, o UploadOptions) (*pendingUpload, error) {
	if err := os.MkdirAll(s.Path(store.IngestDir), 0o755); err != nil { // layouts made by other tools lack this folder
		return nil, err
	}
	path := s.Path(store.IngestDir, sendingPrefix+strings.ToLower(rand.Text()))
	x := &pendingUpload{s: s}
	var err error
	// The lock comes before the file, so that the file never exists without it.
	if x.lock, err = lock.Take(ctx, path+partLockSuffix, lock.Options{}); err != nil {
		return nil, err
	}
	if x.f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
		x.end()
		return nil, err
	}
	x.owned = true
	x.space = s.Space().Reserve(x.f, o.KeepFree)
	if err := x.space.Extend(o.Size); err != nil {
		x.end()
		return nil, err
	}
	if o.Size >= preallocateFrom {
		if err := disk.Preallocate(x.f, o.Size); err != nil {
			x.end()
			return nil, err
		}
	}
	return x, nil
}

// Write implements io.Writer. It returns a [*disk.SpaceError] before the free space on the disk falls below
// UploadOptions.KeepFree.
func (x *pendingUpload) Write(p []byte) (int, error) {
	if end := x.size + int64(len(p)); end > x.space.Size() {
		if err := x.space.Extend(end + limits.UploadSpaceStep); err != nil {
			return 0, err
		}
	}
	n, err := x.f.Write(p)
	x.size += int64(n)
	return n, err
}

// publish syncs the file and renames it. It holds the store's lock during the rename only.
func (x *pendingUpload) publish(ctx context.Context, path string) error {
	if err := disk.SyncAndClose(x.f, 0o444); err != nil {
		return err
	}
	release, err := x.s.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := atomicfile.Rename(x.f.Name(), path); err != nil {
		return err
	}
	x.owned = false
	return disk.SyncDir(x.s.Path(store.IngestDir))
}

// end removes the lock file, and the file if it was not published.
func (x *pendingUpload) end() {
	if x.space != nil {
		x.space.Release()
	}
	if x.f != nil {
		x.f.Close() // may already be closed by publish
	}
	if x.owned {
		os.Remove(x.f.Name())
	}
	lock.Drop(x.lock)
}

// pendingUploadName returns the name of an upload's file, given that name or the name of its lock file.
func pendingUploadName(name string) string { return strings.TrimSuffix(name, partLockSuffix) }

// IsUploading reports whether a process is writing the upload.
func IsUploading(s *store.Store, l Leftover) bool {
	return isLocked(s.Path(store.IngestDir, pendingUploadName(l.Name)+partLockSuffix))
}

// removePendingUpload removes the file of an upload whose writer has died.
func removePendingUpload(s *store.Store, l Leftover) {
	path := s.Path(store.IngestDir, pendingUploadName(l.Name))
	fileLock := flock.New(path+partLockSuffix, flock.SetPermissions(0o644))
	if free, err := fileLock.TryLock(); err != nil || !free {
		return
	}
	os.Remove(path)
	lock.Drop(fileLock)
}
