//go:build linux || darwin

package sendfile

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// TestUnsent: what the other side does not read stays unsent, and nothing does after it has all.
func TestUnsent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dial := Dialer((&net.Dialer{}).DialContext)
	c, err := dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var written int64
	for b := make([]byte, 1<<20); err == nil; { // until the kernel takes no more
		if err := c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		var n int
		n, err = c.Write(b)
		written += int64(n)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	if n := Unsent(c); n <= 0 || int64(n) >= written {
		t.Errorf("%d of %d bytes are unsent", n, written)
	}
	// An answer to the last byte acknowledges all of them.
	if _, err := io.CopyN(io.Discard, other, written); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if n := Unsent(c); n != 0 {
		t.Errorf("%d bytes are unsent after an answer", n)
	}
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	if n := Unsent(client); n != 0 {
		t.Errorf("%d bytes of a pipe are unsent", n)
	}
}
