package main

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/ingotml/ingot/runtime/divide"
)

// A relay passes all bytes on, as late as its link does.
func TestRelay(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	link := divide.Link{Bandwidth: 20e6, Latency: 0.01}
	address, err := relay(t.Context(), l.Addr().String(), link)
	if err != nil {
		t.Fatal(err)
	}
	from, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	sent := bytes.Repeat([]byte("0123456789"), 40_000)
	begin := time.Now()
	go func() { _, _ = from.Write(sent) }()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(to, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("the bytes differ, %v", err)
	}
	if took := time.Since(begin); took < 30*time.Millisecond {
		t.Errorf("400 KB over 20 MB/s and 10 ms took %v, want at least 30 ms", took)
	}
	begin = time.Now()
	if _, err := to.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(from, got[:1]); err != nil || time.Since(begin) < 10*time.Millisecond {
		t.Errorf("a byte back took %v, %v", time.Since(begin), err)
	}
}
