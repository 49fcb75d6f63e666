package server

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/ingotml/ingot/server/wire"
)

// add adds the endpoints of an API, and what follows from them.
func (s *Server) add(a API) {
	s.endpoints = append(s.endpoints, a.Endpoints...)
	for _, e := range a.Endpoints {
		if e.Public {
			s.public = append(s.public, e.Path)
		}
		if e.Operation.File {
			prefix, _, _ := strings.Cut(e.Path, "{")
			s.uploads = append(s.uploads, e.Method+" "+prefix)
		}
	}
	maps.Copy(s.schemas, a.Schemas)
	s.dialects = append(s.dialects, a.Dialects...)
}

// isPublic reports whether a request needs no API key and is served while the server stops.
func (s *Server) isPublic(r *http.Request) bool { return slices.Contains(s.public, r.URL.Path) }

// isUpload reports whether a request's body is a file, which has its own limits.
func (s *Server) isUpload(r *http.Request) bool {
	return slices.ContainsFunc(s.uploads, func(prefix string) bool {
		return strings.HasPrefix(r.Method+" "+r.URL.Path, prefix)
	})
}

// choose returns the endpoint of a route that serves a request.
func choose(list []Endpoint, r *http.Request) Endpoint {
	var plain Endpoint
	for _, e := range list {
		switch {
		case e.Header == "":
			plain = e
		case r.Header.Get(e.Header) != "":
			return e
		}
	}
	if plain.Handle == nil {
		return list[0]
	}
	return plain
}

// otherMethods are the methods that a route refuses by name unless it has them.
var otherMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodOptions,
}

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	shared := map[string][]Endpoint{} // by route
	for _, r := range s.endpoints {
		route := r.Method + " " + r.Path
		if shared[route] = append(shared[route], r); len(shared[route]) > 1 {
			continue
		}
		mux.HandleFunc(route, func(w http.ResponseWriter, req *http.Request) {
			if err := choose(shared[route], req).Handle(w, req); err != nil {
				s.fail(w, req, err)
			}
		})
		methods[r.Path] = append(methods[r.Path], r.Method)
		if r.Method == "GET" {
			methods[r.Path] = append(methods[r.Path], "HEAD")
		}
	}
	// These patterns match the remaining methods. One without a method would conflict with another route's wildcard.
	for path, allowed := range methods {
		slices.Sort(allowed)
		allowed = slices.Compact(allowed)
		list := strings.Join(allowed, ", ")
		for _, method := range otherMethods {
			if slices.Contains(allowed, method) {
				continue
			}
			mux.HandleFunc(method+" "+path, func(w http.ResponseWriter, req *http.Request) {
				w.Header().Set("Allow", list)
				s.fail(w, req, wire.Errorf(http.StatusMethodNotAllowed, "%s %s is not supported: use %s", wire.Clip(req.Method),
					req.URL.Path, list))
			})
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		s.fail(w, req, wire.Errorf(http.StatusNotFound, "%s not found", wire.Clip(req.URL.Path)))
	})
	return mux
}
