package ollama

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/index"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/wire"
)

// Messages about a model that the store does not have. Clients look for Ollama's words, quotes included, which differ
// between its requests.
const (
	notFound        = "model '%s' not found"
	notFoundCopy    = `model "%s" not found`
	notFoundToEmbed = `model "%s" not found, try pulling it first`
)

// missing gives an error about an unknown model Ollama's words, with the name as the request spells it. Other errors
// are returned unchanged.
func missing(err error, format, name string) error {
	if !errors.Is(err, manifest.ErrNotFound) {
		return err
	}
	message := fmt.Sprintf(format, wire.Clip(name))
	var unknown *index.NotFoundError
	if errors.As(err, &unknown) && len(unknown.Near) > 0 {
		message += "; similar names: " + strings.Join(unknown.Near, ", ")
	}
	return wire.Errorf(http.StatusNotFound, "%s", message)
}

// name parses a model's name in a request. Older clients send name instead of model.
func (s *api) name(model string, older ...string) (manifest.Name, error) {
	text := cmp.Or(append([]string{model}, older...)...)
	if text == "" {
		return manifest.Name{}, wire.BadRequest("model is required")
	}
	return s.core.Name(text)
}

// existing returns a name in the case that the store has it in. Whoever resolves it reports what is wrong with it.
func (s *api) existing(text string) string {
	n, err := s.core.Name(text)
	if given, _ := manifest.ParseName(text); err != nil || n == given {
		return text
	}
	return n.String()
}

// canGenerate returns an error for a model that only computes embeddings, which names what was wanted.
func canGenerate(m *server.Model, what string) error {
	if err := m.CheckHead(); err != nil {
		return wire.BadRequest("%q does not support %s: %v", m.RequestedName(), what, err)
	}
	return nil
}

// find resolves a name in the store and returns its model.
func (s *api) find(ctx context.Context, name, unknown string) (*server.Model, error) {
	if name == "" {
		return nil, wire.BadRequest("model is required")
	}
	m, err := s.core.Find(ctx, name)
	return m, missing(err, unknown, name)
}

// copyRequest is the body of /api/copy.
type copyRequest struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
}

// copy is POST /api/copy: it gives a model a second name.
func (s *api) copy(w http.ResponseWriter, r *http.Request) error {
	var q copyRequest
	if err := wire.ReadJSON(r, &q); err != nil {
		return err
	}
	src, err := s.core.Name(q.Source)
	if err != nil {
		return wire.BadRequest("source: %v", err)
	}
	dst, err := s.core.Name(q.Destination)
	if err != nil {
		return wire.BadRequest("destination: %v", err)
	}
	if _, err := s.opts.Store.Copy(r.Context(), src, dst, ""); err != nil {
		return missing(err, notFoundCopy, q.Source)
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// deleteRequest is the body of /api/delete. Older clients send name instead of model.
type deleteRequest struct {
	Model string `json:"model"`
	Name  string `json:"name"`
}

// delete is DELETE /api/delete: it removes a model from the store, and unloads it as soon as it is idle.
func (s *api) delete(w http.ResponseWriter, r *http.Request) error {
	var q deleteRequest
	if err := wire.ReadJSON(r, &q); err != nil {
		return err
	}
	n, err := s.name(q.Model, q.Name)
	if err != nil {
		return err
	}
	err = collect.Remove(r.Context(), s.opts.Store, n)
	if errors.Is(err, manifest.ErrBlobsKept) {
		s.opts.Log("%v", err) // not an error for the client: the name is removed
	} else if err != nil {
		return missing(err, notFound, cmp.Or(q.Model, q.Name))
	}
	s.core.UnloadIdle(n)
	w.WriteHeader(http.StatusOK)
	return nil
}
