//go:build linux || darwin

package sendfile

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Names of the kernel for the number of bytes of a socket that the other side does not have yet.
const (
	linuxOutQueue  = 0x5411 // ioctl SIOCOUTQ
	darwinNumWrite = 0x1024 // option SO_NWRITE
)

// unsent returns how many bytes of a socket the other side does not have yet.
func unsent(c syscall.Conn) (n int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if runtime.GOOS == "linux" {
			n, _ = unix.IoctlGetInt(int(fd), linuxOutQueue)
		} else {
			n, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, darwinNumWrite)
		}
	})
	return n
}
