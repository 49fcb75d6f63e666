// Package servers is the client of running servers.
package servers

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/server/address"
	"github.com/ingotml/ingot/server/identity"
	"github.com/spf13/cobra"
)

// Client is an HTTP client for one server.
type Client struct {
	At   address.Address
	Key  string
	http *http.Client
}

// Flags are the flags that choose the server and its API key.
type Flags struct {
	host string
	Key  KeyFlag
}

// Add adds the flags.
func (f *Flags) Add(c *cobra.Command) {
	c.Flags().StringVar(&f.host, "host", "",
		"server `address`, trusted without proof (default $"+address.Env+")")
	f.Key.Add(c, "server's API key")
}

// New returns a client for the server at --host, or else at INGOT_HOST. A server on this machine that the command
// line does not name must prove that it belongs to the user before it receives anything.
func New(a *cli.App, f Flags) (Client, error) {
	key, err := f.Key.Read(a)
	s := clientAt(a, f.host, key)
	if err != nil || f.host != "" || s.At.Scheme != "http" {
		return s, err
	}
	at, err := url.Parse(s.At.URL())
	if err != nil {
		return s, err
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: at}); err != nil || proxy != nil {
		return s, err // proxies are not used for servers on this machine
	}
	s.http = provenClient(&identity.Dialer{Store: func() (*store.Store, error) { return store.OpenExisting("") }})
	return s, nil
}

// ForStore returns a client for the server at INGOT_HOST. The server must prove that it belongs to the user and
// serves this store, whatever its address is.
func ForStore(a *cli.App, st *store.Store, key string) (Client, error) {
	s := clientAt(a, "", key)
	s.http = provenClient(&identity.Dialer{Store: func() (*store.Store, error) { return st, nil }, Always: true})
	return s, nil
}

func clientAt(a *cli.App, host, key string) Client {
	at, warning := address.FromEnv(host)
	if warning != "" {
		a.Note("note: address %s", warning)
	}
	return Client{at, key, http.DefaultClient}
}

// provenClient returns an HTTP client that uses only connections of the dialer.
func provenClient(d *identity.Dialer) *http.Client {
	t := &http.Transport{DialContext: d.DialContext, DialTLSContext: d.DialTLSContext, MaxIdleConns: 4,
		IdleConnTimeout: time.Minute}
	return &http.Client{Transport: t}
}

// ErrNoServer means that nothing listens at the address.
var ErrNoServer = errors.New("no server")

// Do sends a request with body as JSON, if it is not nil. The caller closes the response's body. A response with an
// error status is returned as an error.
func (s Client) Do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var payload io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.At.URL()+path, payload)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if s.Key != "" {
		r.Header.Set("Authorization", "Bearer "+s.Key)
	}
	response, err := s.http.Do(r)
	var down *net.OpError
	var failed *url.Error
	switch {
	case errors.Is(err, identity.ErrUnproven) && errors.As(err, &failed):
		return nil, fmt.Errorf("%s: %w", s.At.URL(), failed.Err)
	case errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &down) && down.Op == "dial":
		return nil, fmt.Errorf("%w at %s: start one with `ingot serve`, or set %s to another address",
			ErrNoServer, s.At.URL(), address.Env)
	case err != nil:
		return nil, fmt.Errorf("request to the server: %w%s", err, tlsRemedy(s.At, err))
	case response.StatusCode >= http.StatusBadRequest:
		defer response.Body.Close()
		return nil, serverError(s.At, response)
	}
	return response, nil
}

// Get sends a request and decodes the JSON response into to.
func (s Client) Get(ctx context.Context, method, path string, body, to any) error {
	response, err := s.Do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(to); err != nil {
		return fmt.Errorf("response to %s%s: %w", s.At.URL(), path, err)
	}
	return nil
}

// serverError returns the error that a response describes.
func serverError(at address.Address, response *http.Response) error {
	var e struct {
		Error string `json:"error"`
	}
	b, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil || json.Unmarshal(b, &e) != nil || e.Error == "" {
		e.Error = response.Status
	}
	remedy := ""
	if IsTLSServer(response.StatusCode, b) {
		remedy = fmt.Sprintf("; the server has TLS: set %s to https://%s", address.Env, at.Reachable().Listen())
	}
	if response.StatusCode == http.StatusUnauthorized {
		remedy = fmt.Sprintf("; set %s to the key, or name its file with --api-key-file", EnvAPIKey)
	}
	return &StatusError{response.StatusCode, fmt.Sprintf("%s: %s%s", at.URL(), e.Error, remedy)}
}

// IsTLSServer reports whether a response is what Go's servers with TLS send to requests without it.
func IsTLSServer(status int, body []byte) bool {
	return status == http.StatusBadRequest && bytes.Contains(body, []byte("HTTP request to an HTTPS server"))
}

// tlsRemedy says what to do about a failure of TLS, as the end of a message.
func tlsRemedy(at address.Address, err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(err, &unknown):
		return "; if its certificate is of a CA of your own, name the CA's file in SSL_CERT_FILE"
	case errors.As(err, &name):
		return fmt.Sprintf("; set %s to a name that the certificate has", address.Env)
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"),
		strings.Contains(err.Error(), "first record does not look like a TLS handshake"):
		return fmt.Sprintf("; the server has no TLS: set %s to http://%s", address.Env, at.Reachable().Listen())
	}
	return ""
}

// StatusError is an error response of a server.
type StatusError struct {
	Status  int
	message string
}

func (e *StatusError) Error() string { return e.message }
