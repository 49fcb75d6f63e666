//go:build unix

package identity

import (
	"fmt"
	"os"
	"syscall"
)

// fileID tells folders of one path on different systems apart, such as those of containers.
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
