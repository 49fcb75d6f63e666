package server

import (
	"encoding/json"
	"net/http"
	"sync"
)

// openAPI is GET /openapi.json: it returns the OpenAPI document.
func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", jsonType)
	b, err := s.openapi()
	if err != nil {
		return err
	}
	_, _ = w.Write(b) // fails only if the client has disconnected
	return nil
}

// openAPIJSON returns a function that builds the document on its first call.
func (s *Server) openAPIJSON() func() ([]byte, error) {
	return sync.OnceValues(func() ([]byte, error) {
		d, _ := s.document().whole()
		b, err := json.Marshal(d)
		return append(b, '\n'), err
	})
}

// document describes the endpoints.
func (s *Server) document() *document {
	d := newDocument(s.opts.Version, specialSchemas)
	for _, e := range s.endpoints {
		_, failure := s.dialects.failure(e.path, apiError{})
		d.add(e.method, e.path, e.operation, failure)
	}
	return d
}
