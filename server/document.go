package server

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/ingotml/ingot/server/openapi"
	"github.com/ingotml/ingot/server/wire"
)

// openAPI is GET /openapi.json: it returns the OpenAPI document.
func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", wire.JSONType)
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
		d, _ := s.document().Whole()
		b, err := json.Marshal(d)
		return append(b, '\n'), err
	})
}

// document describes the endpoints.
func (s *Server) document() *openapi.Document {
	d := openapi.New(s.opts.Version, s.schemas)
	for _, e := range s.endpoints {
		header := http.Header{}
		if e.Header != "" {
			header.Set(e.Header, "any")
		}
		_, failure := s.dialects.Failure(e.Path, header, wire.Error{})
		e.Operation.Header = e.Header
		d.Add(e.Method, e.Path, e.Operation, failure)
	}
	return d
}
