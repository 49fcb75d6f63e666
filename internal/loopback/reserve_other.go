//go:build !linux

package loopback

import (
	"io"
	"net"
)

func reserve() (int, io.Closer, error) {
	l, err := net.Listen("tcp4", Any)
	if err != nil {
		return 0, nil, err
	}
	return l.Addr().(*net.TCPAddr).Port, io.NopCloser(nil), l.Close()
}
