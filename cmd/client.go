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
	"os"
	"syscall"

	"github.com/ingotml/ingot/server/address"
)

// serverClient asks the server at an address.
type serverClient struct {
	at  address.Address
	key string
}

// newClient takes the address of the flag, else of the environment.
func (a *app) newClient(host string) serverClient {
	at, warning := address.FromEnv(host)
	if warning != "" {
		a.note("note: address %s", warning)
	}
	return serverClient{at, os.Getenv(envAPIKey)}
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
	answer, err := http.DefaultClient.Do(r)
	var down *net.OpError
	switch {
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
		remedy = fmt.Sprintf("; %s is the key that this program sends", envAPIKey)
	}
	return &statusError{answer.StatusCode, fmt.Sprintf("%s: %s%s", at.URL(), e.Error, remedy)}
}

// statusError is an error that a server tells.
type statusError struct {
	status  int
	message string
}

func (e *statusError) Error() string { return e.message }
