package server

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/server/address"
)

// transferRequest is the body of /api/pull and /api/push. Credentials are where `ingot login` keeps them; those of a request are not
// read.
type transferRequest struct {
	Model    string `json:"model"`
	Insecure bool   `json:"insecure"` // certificates are not checked, and no TLS is needed; for hosts that the operator lists
	Stream   *bool  `json:"stream"`

	Name string `json:"name"` // of older clients
}

// pull is POST /api/pull: a model comes from a registry.
func (s *Server) pull(w http.ResponseWriter, r *http.Request) error {
	return s.transfer(w, r, "pulling", func(ctx context.Context, c *registry.Client, n manifest.Name) error {
		_, err := c.Pull(ctx, s.opts.Store, n, registry.PullOptions{})
		return err
	})
}

// push is POST /api/push: a model goes to the registry that its name says.
func (s *Server) push(w http.ResponseWriter, r *http.Request) error {
	return s.transfer(w, r, "pushing", func(ctx context.Context, c *registry.Client, n manifest.Name) error {
		_, err := c.Push(ctx, s.opts.Store, n, n, registry.PushOptions{})
		return err
	})
}

// transfer moves a model. What a client that leaves has made it move is there for the next time.
func (s *Server) transfer(w http.ResponseWriter, r *http.Request, verb string, move func(context.Context, *registry.Client, manifest.Name) error) error {
	var q transferRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	n, err := manifest.ParseName(cmp.Or(q.Model, q.Name))
	if err != nil {
		return err
	}
	if n.IsLocal() {
		return badRequest("%s names no registry: a name is HOST/PATH, such as registry.ollama.ai/library/%s", n, n)
	}
	if q.Insecure && !s.opts.InsecureRegistries.Has(n.Host) {
		return failf(http.StatusForbidden, "requests may not ask %s with insecure; `ingot serve --insecure-registry %s` allows it", clip(n.Host), clip(n.Host))
	}
	return s.follow(w, r, q.Stream, func(ctx context.Context, tell func(progressJSON)) error {
		o := registry.Options{Insecure: q.Insecure, Private: s.mayBePrivate, UserAgent: "ingot/" + s.opts.Version}
		o.Events = func(e registry.Event) { s.moved(e, verb, tell) }
		err := s.move(ctx, o, n, move)
		if q.Insecure && errors.Is(err, registry.ErrPlainHTTP) {
			o.Insecure, o.PlainHTTP = false, true
			err = s.move(ctx, o, n, move)
		}
		if errors.Is(err, registry.ErrPrivateRegistry) {
			return failf(http.StatusForbidden, "%v; `ingot serve --private-registry %s` lets requests name it", err, n.Host)
		}
		return transferError(err)
	})
}

// mayBePrivate tells whether requests may name a registry at an address that is not public: one that the operator lists,
// and one on this machine where nobody but this machine can ask the server.
func (s *Server) mayBePrivate(host string) bool {
	if s.opts.InsecureRegistries.Has(host) || s.opts.PrivateRegistries.Has(host) {
		return true
	}
	at := address.Address{Host: s.opts.Host}
	return registry.IsLoopback(host) && len(s.opts.Hosts) == 0 && (s.opts.Host == "" || at.Loopback())
}

func (s *Server) move(ctx context.Context, o registry.Options, n manifest.Name, move func(context.Context, *registry.Client, manifest.Name) error) error {
	client, err := registry.New(o)
	if err != nil {
		return err
	}
	return move(ctx, client, n)
}

// moved tells of a step of a transfer.
func (s *Server) moved(e registry.Event, verb string, tell func(progressJSON)) {
	switch e.Kind {
	case registry.Plan:
		tell(progressJSON{Status: verb + " manifest"})
		return
	case registry.Warned:
		s.opts.Log("registry %s: %s", e.Name, oneLine(e.Err.Error()))
		return
	case registry.Retry, registry.Waiting, registry.Skipped:
		return
	}
	_, digits, _ := strings.Cut(e.Digest.String(), ":")
	p := progressJSON{Status: verb + " " + digits[:min(len(digits), 12)], Digest: e.Digest.String(), Total: e.Total, Completed: e.Bytes}
	switch e.Kind {
	case registry.Done, registry.Present, registry.Mounted:
		p.Completed = e.Total
	}
	tell(p)
}

// transferError says whose fault a transfer's error is. The key that a registry wants is not this server's.
func transferError(err error) error {
	var (
		answer *registry.StatusError
		netErr net.Error
		urlErr *url.Error
	)
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, manifest.ErrNotFound):
		return err
	case errors.Is(err, registry.ErrUnauthorized):
		return failf(http.StatusForbidden, "%v; `ingot login` on the server's machine stores credentials", err)
	case errors.Is(err, registry.ErrNotFound):
		return failf(http.StatusNotFound, "%v", err)
	}
	for _, gateway := range []error{registry.ErrDigest, registry.ErrUnsupported, registry.ErrInterrupted, registry.ErrCertificate, registry.ErrPlainHTTP,
		registry.ErrTLS, registry.ErrPrivateAddress, manifest.ErrInvalidManifest, manifest.ErrUnknownManifest, manifest.ErrTooLarge} {
		if errors.Is(err, gateway) {
			return failf(http.StatusBadGateway, "%v", err)
		}
	}
	if errors.As(err, &answer) || errors.As(err, &urlErr) || errors.As(err, &netErr) {
		return failf(http.StatusBadGateway, "%v", err)
	}
	return err
}
