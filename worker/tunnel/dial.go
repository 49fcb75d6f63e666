package tunnel

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/ingotml/ingot/internal/limits"
)

// Versions are what the ends of a connection must have in common.
type Versions struct {
	Program string `json:"program"`
	Engine  string `json:"engine"`
}

// Self is what an end of a connection has.
type Self struct {
	Token    Token
	Versions Versions
}

// Request says what a connection is for.
type Request struct {
	Purpose string `json:"purpose"`
	// Detail is JSON that the purpose defines.
	Detail json.RawMessage `json:"detail,omitempty"`
}

// The messages of a handshake, in this order. They are frames of JSON.
type (
	helloMessage struct { // of the dialer
		Protocol int    `json:"protocol"`
		Proof    []byte `json:"proof"`
	}
	proofMessage struct { // of the listener
		Proof   []byte `json:"proof,omitempty"`
		Refused string `json:"refused,omitempty"` // why
	}
	requestMessage struct { // of the dialer
		Versions
		Request
	}
	responseMessage struct { // of the listener
		Versions
		Refused string `json:"refused,omitempty"`
		Kind    string `json:"kind,omitempty"` // of the refusal
	}
)

const (
	protocol = 1
	alpn     = "ingot-tunnel"

	refusedToken    = "token"
	refusedVersions = "versions"
)

// handshakeTime is shorter in a test.
var handshakeTime = limits.TunnelHandshake * time.Second

// tries bounds the connections of a Dial. The first pause between two is firstPause, each further one twice as long.
const (
	tries      = 12
	firstPause = 10 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// Dial connects to a listener. The error is ErrToken, ErrVersions or ErrRefused if the ends do not agree. It connects
// again if the listener ends the connection without a word: others may be keeping it busy.
func Dial(ctx context.Context, address string, self Self, r Request) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	pause := firstPause
	for try := 1; ; try++ {
		c, ended, err := dial(ctx, address, self, r)
		if err == nil {
			return c, nil
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		} else if ended && try < tries {
			select {
			case <-time.After(pause/2 + rand.N(pause)):
				pause = min(2*pause, lastPause)
				continue
			case <-ctx.Done():
			}
		}
		return nil, fmt.Errorf("connect to the worker %s: %w", address, err)
	}
}

// dial connects once. ended says that the listener ended the connection.
func dial(ctx context.Context, address string, self Self, r Request) (c *Conn, ended bool, err error) {
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, false, err
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	c, err = dialed(raw, self, r)
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err == nil {
		return c, false, nil
	}
	raw.Close()
	var broken *net.OpError
	var alert tls.AlertError
	ended = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &broken) && !broken.Timeout() && !errors.As(err, &alert)
	return nil, ended, err
}

// dialed does the dialer's part of the handshake.
func dialed(raw net.Conn, self Self, r Request) (*Conn, error) {
	secure := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{alpn},
		InsecureSkipVerify: true, // the proof below shows who the listener is
	})
	c := &Conn{Conn: secure}
	err := withDeadline(raw, handshakeTime, func() error {
		if err := secure.Handshake(); err != nil {
			return peerError(err)
		}
		state := secure.ConnectionState()
		own, err := self.Token.proof(state, dialer)
		if err != nil {
			return err
		}
		if err := c.WriteJSON(helloMessage{protocol, own}); err != nil {
			return err
		}
		var proof proofMessage
		if err := c.hello(&proof); err != nil {
			return err
		}
		if proof.Refused != "" {
			return refusal(proof.Refused, "")
		}
		if ok, err := self.Token.proves(proof.Proof, state, listener); err != nil || !ok {
			return errors.Join(ErrToken, err)
		}
		if err := c.WriteJSON(requestMessage{self.Versions, r}); err != nil {
			return err
		}
		var response responseMessage
		if err := c.hello(&response); err != nil {
			return err
		}
		if err := differ(self.Versions, response.Versions); err != nil {
			return err
		}
		if response.Refused != "" {
			return refusal(response.Kind, response.Refused)
		}
		c.Peer = response.Versions
		return nil
	})
	return c, err
}

// hello reads a message of the handshake.
func (c *Conn) hello(v any) error {
	b, err := readFrame(c.Conn, limits.TunnelHello)
	if err != nil {
		return peerError(err)
	}
	return decode(b, v)
}

// refusal returns the error of a refusal.
func refusal(kind, why string) error {
	switch kind {
	case refusedToken:
		return ErrToken
	case refusedVersions:
		return fmt.Errorf("%s: %w", why, ErrVersions)
	}
	return fmt.Errorf("%w: %s", ErrRefused, why)
}

// peerError says that a connection that ends in a handshake is probably not one of a worker.
func peerError(err error) error {
	var header tls.RecordHeaderError
	var alert tls.AlertError
	if errors.As(err, &header) || errors.As(err, &alert) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", ErrPeer, err)
	}
	return err
}

// differ returns an error that names both versions if the ends differ.
func differ(own, other Versions) error {
	switch {
	case own.Program != other.Program:
		return fmt.Errorf("this is ingot %s, the other machine has ingot %s: %w", own.Program, other.Program, ErrVersions)
	case own.Engine != other.Engine:
		return fmt.Errorf("this machine has the engine %s, the other one %s: %w", own.Engine, other.Engine, ErrVersions)
	}
	return nil
}
