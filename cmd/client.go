package cmd

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

	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/server/address"
	"github.com/ingotml/ingot/server/identity"
	"github.com/spf13/cobra"
)

// serverClient is an HTTP client for one server.
type serverClient struct {
	at   address.Address
	key  string
	http *http.Client
}

// serverFlags are the flags that choose the server and its API key.
type serverFlags struct {
	host string
	key  keyFlag
}

func (f *serverFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.host, "host", "",
		"server `address`, trusted without proof (default $"+address.Env+")")
	f.key.add(c, "server's API key")
}

// newClient returns a client for the server at --host, or else at INGOT_HOST. A server on this machine that the command
// line does not name must prove that it belongs to the user before it receives anything.
func (a *app) newClient(f serverFlags) (serverClient, error) {
	key, err := f.key.read(a)
	s := a.clientAt(f.host, key)
	if err != nil || f.host != "" || s.at.Scheme != "http" {
		return s, err
	}
	at, err := url.Parse(s.at.URL())
	if err != nil {
		return s, err
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: at}); err != nil || proxy != nil {
		return s, err // proxies are not used for servers on this machine
	}
	s.http = provenClient(&identity.Dialer{Store: func() (*store.Store, error) { return store.OpenExisting("") }})
	return s, nil
}

// storeClient returns a client for the server at INGOT_HOST. The server must prove that it belongs to the user and
// serves this store, whatever its address is.
func (a *app) storeClient(st *store.Store, key string) (serverClient, error) {
	s := a.clientAt("", key)
	s.http = provenClient(&identity.Dialer{Store: func() (*store.Store, error) { return st, nil }, Always: true})
	return s, nil
}

func (a *app) clientAt(host, key string) serverClient {
	at, warning := address.FromEnv(host)
	if warning != "" {
		a.note("note: address %s", warning)
	}
	return serverClient{at, key, http.DefaultClient}
}

// provenClient returns an HTTP client that uses only connections of the dialer.
func provenClient(d *identity.Dialer) *http.Client {
	t := &http.Transport{DialContext: d.DialContext, DialTLSContext: d.DialTLSContext, MaxIdleConns: 4,
		IdleConnTimeout: time.Minute}
	return &http.Client{Transport: t}
}

// errNoServer means that nothing listens at the address.
var errNoServer = errors.New("no server")

// do sends a request with body as JSON, if it is not nil. The caller closes the response's body. A response with an
// error status is returned as an error.
func (s serverClient) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var payload io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.at.URL()+path, payload)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		r.Header.Set("Authorization", "Bearer "+s.key)
	}
	response, err := s.http.Do(r)
	var down *net.OpError
	var failed *url.Error
	switch {
	case errors.Is(err, identity.ErrUnproven) && errors.As(err, &failed):
		return nil, fmt.Errorf("%s: %w", s.at.URL(), failed.Err)
	case errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &down) && down.Op == "dial":
		return nil, fmt.Errorf("%w at %s: start one with `ingot serve`, or set %s to another address",
			errNoServer, s.at.URL(), address.Env)
	case err != nil:
		return nil, fmt.Errorf("request to the server: %w%s", err, tlsRemedy(s.at, err))
	case response.StatusCode >= http.StatusBadRequest:
		defer response.Body.Close()
		return nil, serverError(s.at, response)
	}
	return response, nil
}

// get sends a request and decodes the JSON response into to.
func (s serverClient) get(ctx context.Context, method, path string, body, to any) error {
	response, err := s.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(to); err != nil {
		return fmt.Errorf("response to %s%s: %w", s.at.URL(), path, err)
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
	if isTLSServer(response.StatusCode, b) {
		remedy = fmt.Sprintf("; the server has TLS: set %s to https://%s", address.Env, at.Reachable().Listen())
	}
	if response.StatusCode == http.StatusUnauthorized {
		remedy = fmt.Sprintf("; set %s to the key, or name its file with --api-key-file", envAPIKey)
	}
	return &statusError{response.StatusCode, fmt.Sprintf("%s: %s%s", at.URL(), e.Error, remedy)}
}

// isTLSServer reports whether a response is what Go's servers with TLS send to requests without it.
func isTLSServer(status int, body []byte) bool {
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

// statusError is an error response of a server.
type statusError struct {
	status  int
	message string
}

func (e *statusError) Error() string { return e.message }
