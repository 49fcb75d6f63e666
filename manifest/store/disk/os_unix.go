//go:build !windows

package disk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// SyncDir makes the entries of a folder durable, as Sync does the content of a file.
func SyncDir(dir string) error {
	if unsynced() {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	// Some network file systems cannot sync a folder and return EINVAL or ENOTSUP; their directory operations are durable
	// without it.
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// SameOwner reports whether two files belong to the same user.
func SameOwner(a, b fs.FileInfo) bool {
	x, okX := a.Sys().(*syscall.Stat_t)
	y, okY := b.Sys().(*syscall.Stat_t)
	return okX && okY && x.Uid == y.Uid
}

// OwnedByUserOrStore reports whether a file belongs to this process's user or to the owner of the store's folder.
func OwnedByUserOrStore(file, root fs.FileInfo) bool {
	st, ok := file.Sys().(*syscall.Stat_t)
	return ok && (int(st.Uid) == os.Geteuid() || SameOwner(file, root))
}

// OthersHaveAccess reports whether a mode grants other users any access.
func OthersHaveAccess(mode fs.FileMode) bool { return mode.Perm()&0o077 != 0 }

// ChownLike gives a file the owner and group of another file, if the process has permission to.
func ChownLike(path string, like fs.FileInfo) {
	if st, ok := like.Sys().(*syscall.Stat_t); ok {
		_ = os.Lchown(path, int(st.Uid), int(st.Gid))
	}
}
