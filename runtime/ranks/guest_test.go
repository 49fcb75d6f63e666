package ranks

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"
)

// Whoever lacks the secret, is another server or has a wrong rank is not in the group.
func TestStrangers(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, config, err := newMeeting(inner.Addr().(*net.TCPAddr), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := m.accept(ctx, tls.NewListener(inner, config), 2)
		failed <- err
	}()
	refused := func(what string, conn net.Conn, err error) {
		t.Helper()
		if err != nil {
			return
		}
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := conn.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
			t.Errorf("%s is not refused: %v", what, err)
		}
	}
	wrong := m
	wrong.Secret = make([]byte, secretBytes)
	conn, err := wrong.dial(ctx, 1)
	refused("a wrong secret", conn, err)
	conn, err = m.dial(ctx, 2)
	refused("a wrong rank", conn, err)
	conn, err = net.Dial("tcp", inner.Addr().String())
	if err == nil {
		_, err = conn.Write(append(m.Secret, 0, 0, 0, 1))
	}
	refused("a connection without TLS", conn, err)
	wrong = m
	wrong.Fingerprint = make([]byte, len(m.Fingerprint))
	if _, err := wrong.dial(ctx, 1); err == nil || !strings.Contains(err.Error(), "this is not rank 0") {
		t.Errorf("another server: %v", err)
	}
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "ranks [1] have not connected") {
		t.Errorf("a meeting of strangers: %v", err)
	}
}
