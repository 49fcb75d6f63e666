package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/server/address"
	"github.com/ingotml/ingot/server/identity"
	"github.com/spf13/cobra"
)

// serverClient asks the server at an address.
type serverClient struct {
	at   address.Address
	key  string
	http *http.Client
}

// serverFlags say which server is asked, and with which key.
type serverFlags struct {
	host string
	key  keyFlag
}

func (f *serverFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.host, "host", "",
		"`address` of the server, trusted as it is (default 127.0.0.1:11434, or $"+address.Env+")")
	f.key.add(c, "server's API key")
}

// newClient asks the server that --host names, else the one at INGOT_HOST. A server that the command line does not name
// and that is on this machine has to prove that it is the user's before it gets anything.
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
		return s, err // proxies are never asked for servers on this machine
	}
	s.http = provenClient(&identity.Dialer{Store: func() (*manifest.Store, error) { return manifest.OpenExisting("") }})
	return s, nil
}

// storeClient asks the server at INGOT_HOST if it proves that it is the user's and serves the store, wherever it is.
func (a *app) storeClient(store *manifest.Store, key string) (serverClient, error) {
	s := a.clientAt("", key)
	if s.at.Scheme != "http" {
		return s, fmt.Errorf("%s: %w: no proof passes the program that encrypts for it", s.at.URL(), identity.ErrUnproven)
	}
	s.http = provenClient(&identity.Dialer{Store: func() (*manifest.Store, error) { return store, nil }, Always: true})
	return s, nil
}

func (a *app) clientAt(host, key string) serverClient {
	at, warning := address.FromEnv(host)
	if warning != "" {
		a.note("note: address %s", warning)
	}
	return serverClient{at, key, http.DefaultClient}
}

// provenClient sends requests on connections of a dialer alone.
func provenClient(d *identity.Dialer) *http.Client {
	t := &http.Transport{DialContext: d.DialContext, MaxIdleConns: 4, IdleConnTimeout: time.Minute}
	return &http.Client{Transport: t}
}

// errNoServer says that nothing listens at an address.
var errNoServer = errors.New("no server")

// do sends a request, whose body is a value or nil. The answer is the caller's to close; one that is an error is given as such.
func (s serverClient) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var from io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		from = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.at.URL()+path, from)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		r.Header.Set("Authorization", "Bearer "+s.key)
	}
	answer, err := s.http.Do(r)
	var down *net.OpError
	var failed *url.Error
	switch {
	case errors.Is(err, identity.ErrUnproven) && errors.As(err, &failed):
		return nil, fmt.Errorf("%s: %w", s.at.URL(), failed.Err)
	case errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &down) && down.Op == "dial":
		return nil, fmt.Errorf("%w at %s: `ingot serve` starts one, %s names another address", errNoServer, s.at.URL(), address.Env)
	case err != nil:
		return nil, fmt.Errorf("asking the server: %w", err)
	case answer.StatusCode >= http.StatusBadRequest:
		defer answer.Body.Close()
		return nil, serverError(s.at, answer)
	}
	return answer, nil
}

// get asks for a value.
func (s serverClient) get(ctx context.Context, method, path string, body, to any) error {
	answer, err := s.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(to); err != nil {
		return fmt.Errorf("the answer of %s to %s: %w", s.at.URL(), path, err)
	}
	return nil
}

// serverError is the error that an answer tells.
func serverError(at address.Address, answer *http.Response) error {
	var e struct {
		Error string `json:"error"`
	}
	b, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil || json.Unmarshal(b, &e) != nil || e.Error == "" {
		e.Error = answer.Status
	}
	remedy := ""
	if answer.StatusCode == http.StatusUnauthorized {
		remedy = fmt.Sprintf("; %s is the key that this program sends, or --api-key-file names its file", envAPIKey)
	}
	return &statusError{answer.StatusCode, fmt.Sprintf("%s: %s%s", at.URL(), e.Error, remedy)}
}

// statusError is an error that a server tells.
type statusError struct {
	status  int
	message string
}

func (e *statusError) Error() string { return e.message }
