//go:build unix

package identity

import (
	"fmt"
	"os"
	"syscall"
)

// fileID distinguishes folders with the same path, such as those of different containers.
func fileID(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", s.Dev, s.Ino)
	}
	return ""
}
