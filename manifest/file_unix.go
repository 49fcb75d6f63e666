//go:build !windows

package manifest

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// syncDir makes the entries of a folder durable.
func syncDir(dir string) error {
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

func rename(from, to string) error { return os.Rename(from, to) }

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// sameOwner reports whether two files belong to the same user.
func sameOwner(a, b fs.FileInfo) bool {
	x, okX := a.Sys().(*syscall.Stat_t)
	y, okY := b.Sys().(*syscall.Stat_t)
	return okX && okY && x.Uid == y.Uid
}

// ownedByUserOrStore reports whether a file belongs to this process's user or to the owner of the store's folder.
func ownedByUserOrStore(file, root fs.FileInfo) bool {
	st, ok := file.Sys().(*syscall.Stat_t)
	return ok && (int(st.Uid) == os.Geteuid() || sameOwner(file, root))
}

// othersHaveAccess reports whether a mode grants other users any access.
func othersHaveAccess(mode fs.FileMode) bool { return mode.Perm()&0o077 != 0 }

// chownLike gives a file the owner and group of another file, if the process has permission to.
func chownLike(path string, like fs.FileInfo) {
	if st, ok := like.Sys().(*syscall.Stat_t); ok {
		_ = os.Lchown(path, int(st.Uid), int(st.Gid))
	}
}
