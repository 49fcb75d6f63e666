package ollama

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/server/wire"
)

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
	src, err := manifest.ParseName(q.Source)
	if err != nil {
		return err
	}
	dst, err := manifest.ParseName(q.Destination)
	if err != nil {
		return err
	}
	if _, err := s.opts.Store.Copy(r.Context(), src, dst, ""); err != nil {
		return err
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
	n, err := manifest.ParseName(cmp.Or(q.Model, q.Name))
	if err != nil {
		return err
	}
	err = collect.Remove(r.Context(), s.opts.Store, n)
	if errors.Is(err, manifest.ErrBlobsKept) {
		s.opts.Log("%v", err) // not an error for the client: the name is removed
	} else if err != nil {
		return err
	}
	s.core.UnloadIdle(n)
	w.WriteHeader(http.StatusOK)
	return nil
}
