package server

import (
	"errors"
	"io"
	"net/http"

	"github.com/ingotml/ingot/server/identity"
	"github.com/ingotml/ingot/server/page"
	"github.com/ingotml/ingot/server/wire"
)

// root is GET /: the web page for browsers, a line of text for others.
func (s *Server) root(w http.ResponseWriter, r *http.Request) error {
	if page.Wanted(r) && page.Serve(w, r) {
		return nil
	}
	w.Header().Add("Vary", "Accept")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ingot is running\n")
	return nil
}

// page is GET /page/NAME: a file of the web page.
func (s *Server) page(w http.ResponseWriter, r *http.Request) error {
	if !page.Serve(w, r) {
		return wire.Errorf(http.StatusNotFound, "%s not found", wire.Clip(r.URL.Path))
	}
	return nil
}

// health is GET /healthz: it reports that the process is alive.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
	return nil
}

// ready is GET /readyz: it reports whether requests are accepted.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if s.stopping.Load() {
		return wire.ErrStopping
	}
	return s.health(w, r)
}

// prove is GET /api/prove: it proves to a client that the server belongs to the client's user.
func (s *Server) prove(w http.ResponseWriter, r *http.Request) error {
	p, err := identity.Prove(s.opts.Store, r)
	switch {
	case errors.Is(err, identity.ErrNonce):
		return wire.BadParam(identity.NonceParameter, "%v", err)
	case err != nil: // not shown: it contains paths, and the client has not authenticated
		return wire.Errorf(http.StatusServiceUnavailable, "the server cannot read its store's secret")
	}
	return wire.WriteJSON(w, p)
}
