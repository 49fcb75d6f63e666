//go:build linux || darwin

package verified

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// system returns what only the system sets: the inode, and the time of the last change of the file or its inode. The
// number of the device is no part of it: with some file systems it differs after each mount.
func system(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d %d", s.Ino, changed(info).UnixNano())
	}
	return ""
}

// changed returns when a file was changed for the last time.
func changed(info fs.FileInfo) time.Time {
	at := info.ModTime()
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		if c := time.Unix(changeTime(s).Unix()); c.After(at) {
			return c
		}
	}
	return at
}
