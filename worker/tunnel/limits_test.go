package tunnel

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
)

func TestBounds(t *testing.T) {
	e := serve(t, self(t, "a", now))
	secure, err := tls.Dial("tcp", e.address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}})
	if err != nil {
		t.Fatal(err)
	}
	defer secure.Close()
	secure.Write(binary.BigEndian.AppendUint32(nil, limits.TunnelHello+1))
	e.logged(t, "refused", fmt.Sprintf("a frame of %d bytes is longer than %d", limits.TunnelHello+1, limits.TunnelHello))

	c, err := Dial(t.Context(), e.address, self(t, "a", now), Request{Purpose: "echo"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.WriteFrame(make([]byte, limits.TunnelFrame+1)); err == nil {
		t.Error("a frame that is too long was sent")
	}
	c.Write(binary.BigEndian.AppendUint32(nil, limits.TunnelFrame+1))
	e.logged(t, "echo from", fmt.Sprintf("longer than %d", limits.TunnelFrame))

	for _, token := range []string{"", strings.Repeat("x", MinToken-1)} {
		if _, err := NewToken(token); err == nil {
			t.Errorf("a token of %d characters was accepted", len(token))
		}
	}
}

// A connection that sends nothing is closed.
func TestSlowHandshake(t *testing.T) {
	defer func(d time.Duration) { handshakeTime = d }(handshakeTime)
	if handshakeTime != limits.TunnelHandshake*time.Second {
		t.Fatalf("a handshake may take %v", handshakeTime)
	}
	handshakeTime = 50 * time.Millisecond
	t.Run("serve", func(t *testing.T) {
		e := serve(t, self(t, "a", now))
		raw, err := net.Dial("tcp", e.address)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		if _, err := io.ReadAll(raw); err != nil {
			t.Error(err)
		}
		e.logged(t, "refused", "timeout")
	})
}

func TestPipe(t *testing.T) {
	pair := func() (near, far net.Conn) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if near, err = net.Dial("tcp", l.Addr().String()); err == nil {
			far, err = l.Accept()
		}
		if err != nil {
			t.Fatal(err)
		}
		return near, far
	}
	left, a := pair()
	b, right := pair()
	counts := make(chan [2]int64)
	go func() {
		toA, toB := Pipe(a, b)
		counts <- [2]int64{toA, toB}
	}()
	io.WriteString(left, "request")
	left.(*net.TCPConn).CloseWrite() // the answer still comes
	if got, err := io.ReadAll(right); err != nil || string(got) != "request" {
		t.Errorf("read %q, %v", got, err)
	}
	io.WriteString(right, "the answer")
	right.Close()
	if got, err := io.ReadAll(left); err != nil || string(got) != "the answer" {
		t.Errorf("read %q, %v", got, err)
	}
	if n := <-counts; n != [2]int64{10, 7} {
		t.Errorf("counted %v", n)
	}
}

// Whatever the bytes, a frame is what was written, or an error, and takes no more memory than its bytes.
func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 2, 'a', 'b', 0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 0, 0, 9, 'a'})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		var again bytes.Buffer
		for {
			b, err := readFrame(r, 1<<10)
			if err != nil {
				break
			}
			if len(b) > 1<<10 || cap(b) > 2*len(b)+1<<10 {
				t.Fatalf("a frame of %d bytes in %d", len(b), cap(b))
			}
			if err := writeFrame(&again, b); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.HasPrefix(data, again.Bytes()) {
			t.Errorf("read %q of %q", again.Bytes(), data)
		}
	})
}

// FuzzHandshake: whatever a message of a handshake is, it is read or refused as not of the protocol.
func FuzzHandshake(f *testing.F) {
	for _, m := range []any{
		helloMessage{protocol, make([]byte, 32)}, requestMessage{now, Request{Purpose: "x"}}, proofMessage{Refused: "token"},
		responseMessage{Versions: now, Kind: "versions"},
	} {
		b, _ := json.Marshal(m)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, v := range []any{new(helloMessage), new(proofMessage), new(requestMessage), new(responseMessage)} {
			if err := decode(data, v); err != nil && !errors.Is(err, ErrPeer) {
				t.Fatal(err)
			}
		}
	})
}
