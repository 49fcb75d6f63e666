package ollama

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry"
	registryaddress "github.com/ingotml/ingot/registry/address"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/server/address"
	"github.com/ingotml/ingot/server/wire"
)

// transferRequest is the body of /api/pull and /api/push. Credentials are those of `ingot login` on the server;
// credentials in a request are ignored.
type transferRequest struct {
	Model    string `json:"model"`
	Insecure bool   `json:"insecure"` // skip certificate checks, or use no TLS; only for hosts that the operator allows
	Stream   *bool  `json:"stream"`

	Name string `json:"name"` // sent by older clients instead of model
}

// pulling begins the statuses of a pull.
const pulling = "pulling"

// pull is POST /api/pull: it pulls a model from the registry in its name. Files of a model are converted.
func (s *api) pull(w http.ResponseWriter, r *http.Request) error {
	return s.transfer(w, r, pulling, func(ctx context.Context, c *registry.Client, n manifest.Name,
		report reporter) error {
		result, err := c.Pull(ctx, s.opts.Store, n, registry.PullOptions{Files: true})
		if err != nil || result.Files == nil {
			return err
		}
		if err := s.convertPulled(ctx, result, report); err != nil {
			return err
		}
		result.Done()
		return nil
	})
}

// push is POST /api/push: it pushes a model to the registry in its name.
func (s *api) push(w http.ResponseWriter, r *http.Request) error {
	return s.transfer(w, r, "pushing", func(ctx context.Context, c *registry.Client, n manifest.Name, _ reporter) error {
		_, err := c.Push(ctx, s.opts.Store, n, n, registry.PushOptions{})
		return missing(err, notFound, n.String())
	})
}

// transfer moves a model. If the client disconnects, the next transfer resumes.
func (s *api) transfer(w http.ResponseWriter, r *http.Request, verb string,
	move func(context.Context, *registry.Client, manifest.Name, reporter) error) error {
	var q transferRequest
	if err := wire.ReadJSON(r, &q); err != nil {
		return err
	}
	n, err := s.name(q.Model, q.Name)
	if err != nil {
		return err
	}
	how := progressStream{q.Stream, verb + " manifest", s.core.Silence()}
	if n.IsLocal() && verb == pulling {
		// Clients pull a model before they use it. A name without a registry has nothing newer than what is here.
		if _, err := s.opts.Store.ResolveRaw(r.Context(), n); err == nil {
			return streamProgress(w, r, how, func(_ context.Context, report reporter) error {
				report(progressJSON{Status: pulling + " manifest"})
				return nil
			})
		}
	}
	if n.IsLocal() {
		return wire.BadRequest("%s has no registry: use HOST/PATH, such as registry.ollama.ai/library/%s", n, n)
	}
	if q.Insecure && !s.opts.InsecureRegistries.Has(n.Host) {
		return wire.Errorf(http.StatusForbidden,
			"insecure is not allowed for %s; `ingot serve --insecure-registry %s` allows it",
			wire.Clip(n.Host), wire.Clip(n.Host))
	}
	return streamProgress(w, r, how, func(ctx context.Context, report reporter) error {
		o := registry.Options{}
		o.Connection = remote.Options{Insecure: q.Insecure, Private: s.allowsPrivate, UserAgent: "ingot/" + s.opts.Version,
			Setting: s.opts.RegistrySetting}
		o.Events = func(e registry.Event) { s.reportTransfer(e, verb, report) }
		run := func() error {
			client, err := registry.New(o)
			if err != nil {
				return err
			}
			return move(ctx, client, n, report)
		}
		err := run()
		if q.Insecure && errors.Is(err, remote.ErrPlainHTTP) {
			o.Connection.Insecure, o.Connection.PlainHTTP = false, true
			err = run()
		}
		if errors.Is(err, remote.ErrPrivateRegistry) {
			return wire.Errorf(http.StatusForbidden, "%v; `ingot serve --private-registry %s` allows it", err, n.Host)
		}
		return transferError(err)
	})
}

// allowsPrivate reports whether requests may use a registry at a non-public address: one that the operator lists, or
// one on this machine if only this machine can reach the server.
func (s *api) allowsPrivate(host string) bool {
	if s.opts.InsecureRegistries.Has(host) || s.opts.PrivateRegistries.Has(host) {
		return true
	}
	at := address.Address{Host: s.opts.Host}
	return registryaddress.IsLoopback(host) && len(s.opts.Hosts) == 0 && (s.opts.Host == "" || at.Loopback())
}

// reportTransfer reports a transfer's event as progress.
func (s *api) reportTransfer(e registry.Event, verb string, report reporter) {
	switch e.Kind {
	case registry.Plan:
		report(progressJSON{Status: verb + " manifest"})
		return
	case registry.Warned:
		s.opts.Log("registry %s: %s", e.Name, wire.Line(e.Err.Error()))
		return
	case registry.Paused:
		s.opts.Log("registry %s limits requests: waiting %s", wire.Clip(e.Name), e.Wait.Round(time.Second))
		return
	case registry.Retry, registry.Waiting, registry.Skipped:
		return
	}
	_, digits, _ := strings.Cut(e.Digest.String(), ":")
	p := progressJSON{Status: verb + " " + digits[:min(len(digits), 12)], Digest: e.Digest.String(),
		Total: e.Total, Completed: e.Bytes}
	switch e.Kind {
	case registry.Done, registry.Present, registry.Mounted:
		p.Completed = e.Total
	}
	report(p)
}

// transferError sets the status of a transfer's error. A registry's 401 becomes 403, since the client's key for this
// server is not at fault.
func transferError(err error) error {
	var (
		status *remote.StatusError
		netErr net.Error
		urlErr *url.Error
	)
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if status, advice := fault.Transfer(err); status != 0 {
		return wire.Errorf(status, "%v%s", err, advice)
	}
	if errors.As(err, &status) || errors.As(err, &urlErr) || errors.As(err, &netErr) {
		return wire.Errorf(http.StatusBadGateway, "%v", err)
	}
	return err
}
