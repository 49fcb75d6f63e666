package loopback

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

func reserve() (int, io.Closer, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, os.NewSyscallError("socket", err)
	}
	holder := os.NewFile(uintptr(fd), "reserved port")
	port, err := bind(fd)
	if err != nil {
		holder.Close()
		return 0, nil, err
	}
	return port, holder, nil
}

// bind binds a socket to a free port. SO_REUSEADDR must be set on both sockets that share a port: see socket(7).
func bind(fd int) (port int, err error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	a, err := unix.Getsockname(fd)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	return a.(*unix.SockaddrInet4).Port, nil
}
