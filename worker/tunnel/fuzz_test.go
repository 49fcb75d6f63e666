package tunnel

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/runtest"
)

// stranger sends messages of a handshake in any order, right ones, wrong ones and bytes that are none.
type stranger struct {
	*runtest.Choices
	token Token
	state tls.ConnectionState
	role  role // of the right proofs
}

func (s stranger) proof(r role) []byte {
	p, err := s.token.proof(s.state, r)
	if err != nil {
		panic(err)
	}
	return p
}

func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// frame is the next frame, whole or not.
func (s stranger) frame() []byte {
	var body []byte
	switch s.N(10) {
	case 0, 1:
		body = encoded(helloMessage{protocol, s.proof(s.role)})
	case 2, 3:
		body = encoded(proofMessage{Proof: s.proof(s.role), Refused: s.Pick("", "", "token", "versions", "x")})
	case 4:
		body = encoded(requestMessage{now, Request{s.Pick("x", "", "format"), json.RawMessage(s.Pick("7", `{"a":[]}`))}})
	case 5:
		body = encoded(responseMessage{now, s.Pick("", "", "busy"), s.Pick("", "token", "versions", "other")})
	case 6:
		body = encoded(requestMessage{Versions{Program: s.Pick("3.0", "", string(make([]byte, 2000)))}, Request{}})
	case 7: // the proof of the other end, or none
		body = encoded(helloMessage{int(s.Byte()), s.Choices.Bytes()})
		if s.Yes(2) {
			body = encoded(helloMessage{protocol, s.proof(map[role]role{dialer: listener, listener: dialer}[s.role])})
		}
	case 8:
		body = s.Choices.Bytes()
	default:
		body = []byte(s.Pick("", "null", "{}", `{"proof":null}`, `{"proof":7}`, `[`))
	}
	n := len(body)
	switch s.N(8) {
	case 6:
		n = int([]uint32{0, 1, limits.TunnelHello + 1, limits.TunnelFrame, 1<<32 - 1}[s.N(5)])
	case 7:
		body = body[:len(body)/2]
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(n)), body...)
}

// talk sends frames until the bytes of the input have ended, and then no more.
func (s stranger) talk(c *tls.Conn) {
	for range 8 {
		if _, err := c.Write(s.frame()); err != nil || s.Done() {
			break
		}
	}
	_ = c.CloseWrite()
	_, _ = io.Copy(io.Discard, c)
}

func seedHandshakes(f *testing.F) {
	f.Helper()
	for _, choices := range [][]byte{
		{0, 0, 4, 0, 0, 0}, {2, 0, 0, 5, 0, 0, 0}, {0, 0, 0, 0}, {8, 3, 1, 2, 3, 0}, {0, 6, 4}, {7, 1, 1, 1, 0}, {9, 1, 0,
			4, 0, 0},
		{0, 7}, {0, 0, 6, 2, 0}, {2, 0, 2, 0, 6, 2, 0, 5, 0, 0, 1},
	} {
		f.Add(choices, true, true)
		f.Add(choices, false, true)
		f.Add(choices, true, false)
	}
}

// FuzzListener: whatever messages a machine sends, in whatever order, its connection ends, and its request is handled
// only if the first message proves that it has the token.
func FuzzListener(f *testing.F) {
	seedHandshakes(f)
	key := mustToken(f, "right-right-right-right-right-right")
	other := mustToken(f, "wrong-wrong-wrong-wrong-wrong-wrong")
	l := listenLocal(f)
	var handled atomic.Int64
	serveUntilEnd(f, func(ctx context.Context) error {
		return Serve(ctx, l, Self{key, now}, func(string, ...any) {},
			func(_ context.Context, r Request, accept func() (*Conn, error)) error {
				handled.Add(1)
				if r.Purpose != "x" {
					return errors.New("no such purpose")
				}
				c, err := accept()
				if err != nil {
					return err
				}
				for {
					if _, err := c.ReadFrame(); err != nil {
						return nil
					}
				}
			})
	})
	f.Fuzz(func(t *testing.T, choices []byte, hasToken, speaksTLS bool) {
		before := handled.Load()
		raw, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		_ = raw.SetDeadline(time.Now().Add(time.Minute))
		if !speaksTLS {
			_, _ = raw.Write(choices)
			_ = raw.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, raw)
		} else {
			c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}})
			if err := c.Handshake(); err != nil {
				t.Fatal(err)
			}
			s := stranger{runtest.NewChoices(choices), other, c.ConnectionState(), dialer}
			if hasToken {
				s.token = key
			}
			s.talk(c)
		}
		if !hasToken && handled.Load() != before {
			t.Errorf("a request without the token was handled")
		}
	})
}

// FuzzDial: whatever a listener answers, a connection to it ends, and succeeds only if it has the token.
func FuzzDial(f *testing.F) {
	seedHandshakes(f)
	key := mustToken(f, "right-right-right-right-right-right")
	other := mustToken(f, "wrong-wrong-wrong-wrong-wrong-wrong")
	certificate, err := selfSigned()
	if err != nil {
		f.Fatal(err)
	}
	l := listenLocal(f)
	f.Fuzz(func(t *testing.T, choices []byte, hasToken, speaksTLS bool) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			raw, err := l.Accept()
			if err != nil {
				return
			}
			defer raw.Close()
			if !speaksTLS {
				_, _ = raw.Write(choices)
				_ = raw.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, raw)
				return
			}
			c := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{alpn}})
			if c.Handshake() != nil {
				return
			}
			s := stranger{runtest.NewChoices(choices), other, c.ConnectionState(), listener}
			if hasToken {
				s.token = key
			}
			s.talk(c)
		}()
		c, _, err := dial(t.Context(), l.Addr().String(), Self{key, now}, Request{Purpose: "x"})
		if err == nil {
			c.Close()
			if !hasToken || !speaksTLS {
				t.Error("connected to a listener without the token")
			}
		} else if len(err.Error()) > 2*limits.TunnelHello {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
		<-done
	})
}

func mustToken(t testing.TB, text string) Token {
	t.Helper()
	k, err := NewToken(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func listenLocal(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// serveUntilEnd runs a server until the test has ended.
func serveUntilEnd(t testing.TB, serve func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
