package identity

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/manifest"
)

// ErrUnproven says that a server did not prove that it is run by the owner of the client's store and serves that store.
// It has got nothing but the challenge.
var ErrUnproven = errors.New("the server did not prove that it is yours and serves this store")

// Dialer connects to servers and has each connection proven before it hands it out.
type Dialer struct {
	// Store opens the client's store. It is called for connections that need a proof.
	Store func() (*manifest.Store, error)
	// Always asks servers on other machines for a proof too. They are whom the user named, so that otherwise only
	// connections that stay on this machine need one.
	Always bool

	patience time.Duration // in tests: in place of limits.ProofTime
}

// DialContext connects as net.Dialer does. Its errors are those of the connection, or ErrUnproven with the reason.
func (d *Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if err := d.admit(ctx, conn, addr); err != nil {
		conn.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", ErrUnproven, err)
	}
	return conn, nil
}

// admit returns nil for a connection that needs no proof or that is proven.
func (d *Dialer) admit(ctx context.Context, conn net.Conn, host string) error {
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
		return errors.New("its proof is wrong: it has another store, or is another program between you and your server")
	}
	return nil
}

// challenge asks for a proof and leaves the connection ready for the next request.
func (d *Dialer) challenge(ctx context.Context, conn net.Conn, host, nonce string) ([]byte, error) {
	patience := d.patience
	if patience <= 0 {
		patience = limits.ProofTime * time.Second
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // fails on a closed connection only
	got, err := ask(conn, host, nonce)
	if !stop() {
		return nil, ctx.Err()
	}
	var slow net.Error
	switch {
	case errors.As(err, &slow) && slow.Timeout():
		return nil, errors.New("it does not answer in time")
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
	most := &io.LimitedReader{R: conn, N: limits.ProofAnswer}
	reader := bufio.NewReader(most)
	answer, err := http.ReadResponse(reader, request)
	var got ProofJSON
	if err == nil {
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("it answers the challenge with status %d", answer.StatusCode)
		}
		var body []byte
		if body, err = io.ReadAll(answer.Body); err == nil {
			err = json.Unmarshal(body, &got)
		}
	}
	switch {
	case most.N <= 0:
		return nil, fmt.Errorf("its answer to the challenge has more than %d bytes", limits.ProofAnswer)
	case err != nil:
		return nil, fmt.Errorf("its answer to the challenge: %w", err)
	case answer.Close || reader.Buffered() > 0:
		return nil, errors.New("it does not keep the connection after the challenge")
	}
	return hex.DecodeString(got.Proof)
}
