package tunnel

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/conns"
	"github.com/ingotml/ingot/internal/limits/loglimit"
)

// Handler is called for each proven connection, in its own goroutine. If it returns an error before it calls accept,
// the dialer gets the error's text as a refusal. The connection is closed when it returns.
type Handler func(ctx context.Context, r Request, accept func() (*Conn, error)) error

// Serve accepts connections and handles those whose dialers have the token and the same versions. All others are
// refused and logged, within the bounds of a log. It returns when ctx ends or the listener fails, after it has closed
// the listener and all connections and their handlers have returned.
func Serve(ctx context.Context, l net.Listener, self Self, log func(format string, args ...any), h Handler) error {
	certificate, err := selfSigned()
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var handlers sync.WaitGroup
	defer handlers.Wait()
	defer cancel()
	context.AfterFunc(ctx, func() { l.Close() })
	bounded := loglimit.New(log)
	log = bounded.Printf
	handlers.Go(func() { <-ctx.Done(); bounded.Close() })
	l = conns.Limit(l, conns.Options{
		Most: limits.TunnelPending, PerAddress: limits.TunnelPendingPerAddress, Random: true,
		Closed: func(from net.Addr) { log("refused %s: it had not proven itself when too many others came", from) },
		Fewer: func(most int) {
			log("too many open files: at most %d connections prove themselves at a time; raise the limit (ulimit -n)", most)
		},
	})
	s := &server{
		self: self, log: log, handle: h,
		config: &tls.Config{
			MinVersion: tls.VersionTLS13, NextProtos: []string{alpn}, Certificates: []tls.Certificate{certificate},
			SessionTicketsDisabled: true,
			GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				conns.Of(hello.Conn).Use(conns.Begun) // before those that say nothing, or little by little
				return nil, nil
			},
		},
	}
	for {
		raw, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // such as too many open files
			log("accept a connection: %v", err)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		handlers.Go(func() { s.serve(ctx, raw) })
	}
}

type server struct {
	self   Self
	log    func(string, ...any)
	handle Handler
	config *tls.Config
}

// serve does the listener's part of a connection.
func (s *server) serve(ctx context.Context, raw net.Conn) {
	defer raw.Close()
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	from := raw.RemoteAddr()
	c := &Conn{Conn: tls.Server(raw, s.config)}
	var request requestMessage
	err := withDeadline(raw, handshakeTime, func() (err error) {
		request, err = s.prove(c)
		return err
	})
	if !conns.Of(raw).Leave() {
		return // closed for another one, which is in the log
	}
	if err != nil {
		if ctx.Err() == nil {
			s.log("refused %s: %v", from, err)
		}
		return
	}
	accepted := false
	err = s.handle(ctx, request.Request, func() (*Conn, error) {
		accepted = true
		return c, s.respond(c, responseMessage{})
	})
	switch {
	case err == nil || ctx.Err() != nil:
	case accepted:
		s.log("%s from %s: %v", request.Purpose, from, err)
	default:
		s.log("refused %s from %s: %v", request.Purpose, from, err)
		_ = s.respond(c, responseMessage{Refused: err.Error()})
	}
}

// prove checks that the dialer has the token and the same versions, and returns its request.
func (s *server) prove(c *Conn) (r requestMessage, err error) {
	secure := c.Conn.(*tls.Conn)
	if err := secure.Handshake(); err != nil {
		return r, peerError(err)
	}
	if secure.ConnectionState().NegotiatedProtocol != alpn {
		return r, ErrPeer // crypto/tls accepts clients that name no protocol
	}
	var hello helloMessage
	if err := c.hello(&hello); err != nil {
		return r, err
	}
	if hello.Protocol != protocol {
		err := fmt.Errorf("protocol %d instead of %d: %w", hello.Protocol, protocol, ErrVersions)
		_ = c.WriteJSON(proofMessage{Refused: refusedVersions})
		return r, err
	}
	state := secure.ConnectionState()
	if ok, err := s.self.Token.proves(hello.Proof, state, dialer); err != nil || !ok {
		_ = c.WriteJSON(proofMessage{Refused: refusedToken})
		return r, errors.Join(ErrToken, err)
	}
	own, err := s.self.Token.proof(state, listener)
	if err != nil {
		return r, err
	}
	if err := c.WriteJSON(proofMessage{Proof: own}); err != nil {
		return r, err
	}
	b, err := c.ReadFrame()
	if err != nil {
		return r, peerError(err)
	}
	if err := decode(b, &r); err != nil {
		return r, err
	}
	c.Peer = r.Versions
	if err := differ(s.self.Versions, r.Versions); err != nil {
		_ = s.respond(c, responseMessage{Refused: err.Error(), Kind: refusedVersions})
		return r, err
	}
	return r, nil
}

func (s *server) respond(c *Conn, a responseMessage) error {
	a.Versions = s.self.Versions
	// A longer refusal would exceed the limit of a message.
	const most = limits.TunnelHello / 8
	if len(a.Refused) > most {
		a.Refused = a.Refused[:most]
	}
	return withDeadline(c.Conn, handshakeTime, func() error { return c.WriteJSON(a) })
}

// selfSigned returns a certificate that TLS wants and that proves nothing.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-24 * time.Hour), NotAfter: now.AddDate(10, 0, 0),
	}
	b, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{b}, PrivateKey: key}, err
}
