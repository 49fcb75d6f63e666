package server

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/ingotml/ingot/manifest"
)

// copyRequest is the body of /api/copy.
type copyRequest struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
}

// copy is POST /api/copy: a model gets a second name.
func (s *Server) copy(w http.ResponseWriter, r *http.Request) error {
	var q copyRequest
	if err := readJSON(r, &q); err != nil {
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

// deleteRequest is the body of /api/delete; name is what older clients call the model.
type deleteRequest struct {
	Model string `json:"model"`
	Name  string `json:"name"`
}

// delete is DELETE /api/delete: a model leaves the store, and its memory as soon as nobody uses it.
func (s *Server) delete(w http.ResponseWriter, r *http.Request) error {
	var q deleteRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	n, err := manifest.ParseName(cmp.Or(q.Model, q.Name))
	if err != nil {
		return err
	}
	err = s.opts.Store.Remove(r.Context(), n)
	if errors.Is(err, manifest.ErrBlobsKept) {
		s.opts.Log("%v", err) // the name is gone, which is what was asked for
	} else if err != nil {
		return err
	}
	s.pool.Stop(n.String())
	w.WriteHeader(http.StatusOK)
	return nil
}
