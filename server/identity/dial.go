package identity

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/manifest/store"
)

// ErrUnproven reports a server that did not prove that it serves the client's store and is run by the store's owner.
// The client has sent it nothing but the challenge.
var ErrUnproven = fault.Register(
	errors.New("the server did not prove that it is yours and serves this store"),
	fault.Kind{
		Name:  "server/identity.ErrUnproven",
		Means: "the server did not prove that it is its user's and serves the same store",
		Rank:  fault.Server + 1,
		Remedy: "nothing was sent; restart the server if it is older than this program, " +
			"or name it with --host to trust it",
	},
)

// Dialer connects to servers and verifies each connection before it returns it.
type Dialer struct {
	// Store opens the client's store. It is called for connections that need a proof.
	Store func() (*store.Store, error)
	// Always requires a proof from servers on other machines too. By default only connections within this machine need
	// one, since the user has named a server on another machine.
	Always bool

	timeout time.Duration  // for tests: replaces limits.ProofTime
	roots   *x509.CertPool // for tests: of the servers' certificates
}

// DialContext connects like net.Dialer. If the server does not prove its identity, the error wraps ErrUnproven and the
// reason.
func (d *Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.dial(ctx, network, addr, false)
}

// DialTLSContext is DialContext for servers with TLS, whose certificate is verified too. The proof is asked for within
// TLS: a proxy that ends TLS cannot give it.
func (d *Dialer) DialTLSContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.dial(ctx, network, addr, true)
}

func (d *Dialer) dial(ctx context.Context, network, addr string, secure bool) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if secure {
		host, _, _ := net.SplitHostPort(addr) // of an address that was dialed
		inner := tls.Client(conn, &tls.Config{ServerName: host, RootCAs: d.roots, NextProtos: []string{"http/1.1"}})
		within, cancel := context.WithTimeout(ctx, d.proofTime())
		defer cancel()
		if err := inner.HandshakeContext(within); err != nil {
			conn.Close()
			return nil, err
		}
		conn = inner
	}
	if err := d.verify(ctx, conn, addr); err != nil {
		conn.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", ErrUnproven, err)
	}
	return conn, nil
}

// verify returns nil if a connection needs no proof, or if the server proves its identity.
func (d *Dialer) verify(ctx context.Context, conn net.Conn, host string) error {
	server, err := endpoint(conn.RemoteAddr().String())
	if err != nil {
		return err
	}
	client, err := endpoint(conn.LocalAddr().String())
	if err != nil {
		return err
	}
	if here := server.Addr().IsLoopback() || server.Addr() == client.Addr(); !here && !d.Always {
		return nil
	}
	store, err := d.Store()
	if err != nil {
		return err
	}
	nonce := make([]byte, NonceSize)
	rand.Read(nonce) // never fails
	want, err := proof(ctx, store, hex.EncodeToString(nonce), server, client)
	if err != nil {
		return err
	}
	got, err := d.challenge(ctx, conn, host, hex.EncodeToString(nonce))
	if err != nil {
		return err
	}
	if !hmac.Equal(got, want) {
		return errors.New("the proof is wrong: the server has another store, or another program forwards the connection")
	}
	return nil
}

// proofTime is how long a server has to respond.
func (d *Dialer) proofTime() time.Duration {
	if d.timeout > 0 {
		return d.timeout
	}
	return limits.ProofTime * time.Second
}

// challenge requests a proof. The connection can be used for other requests afterwards.
func (d *Dialer) challenge(ctx context.Context, conn net.Conn, host, nonce string) ([]byte, error) {
	if err := conn.SetDeadline(time.Now().Add(d.proofTime())); err != nil {
		return nil, err
	}
	// SetDeadline fails only if the connection is closed.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	got, err := ask(conn, host, nonce)
	if !stop() {
		return nil, ctx.Err()
	}
	var slow net.Error
	switch {
	case errors.As(err, &slow) && slow.Timeout():
		return nil, errors.New("no response to the challenge in time")
	case err != nil:
		return nil, err
	}
	return got, conn.SetDeadline(time.Time{})
}

func ask(conn net.Conn, host, nonce string) ([]byte, error) {
	at := &url.URL{Scheme: "http", Host: host, Path: Path, RawQuery: NonceParameter + "=" + nonce}
	request := &http.Request{Method: http.MethodGet, URL: at, Host: host}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: conn, N: limits.ProofResponse}
	reader := bufio.NewReader(limited)
	response, err := http.ReadResponse(reader, request)
	var got ProofJSON
	if err == nil {
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("the response to the challenge has status %d", response.StatusCode)
		}
		var body []byte
		if body, err = io.ReadAll(response.Body); err == nil {
			err = json.Unmarshal(body, &got)
		}
	}
	switch {
	case limited.N <= 0:
		return nil, fmt.Errorf("the response to the challenge exceeds %d bytes", limits.ProofResponse)
	case err != nil:
		return nil, fmt.Errorf("the response to the challenge: %w", err)
	case response.Close || reader.Buffered() > 0:
		return nil, errors.New("the server closes the connection after the challenge")
	}
	return hex.DecodeString(got.Proof)
}
