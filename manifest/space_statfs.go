//go:build linux || darwin

package manifest

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// freeSpace is what this user may still write to the disk of a folder.
func freeSpace(dir string) (int64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}

// allocated is what a file takes up, which differs from its size for one with holes or with space ahead.
func allocated(info os.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
