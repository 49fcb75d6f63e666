//go:build linux || darwin

package remote

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// maxUnsent is how many bytes the kernel takes for a connection before the network does. It is small, so that bytes that
// the kernel has taken are progress: a socket's buffer can hold those of minutes on a slow connection.
const maxUnsent = 256 << 10

// limitUnsent limits the unsent bytes of a connection. Without it, a slow connection may look stalled.
func limitUnsent(c syscall.RawConn) {
	_ = c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent)
	})
}
