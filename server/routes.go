package server

import (
	"net/http"
	"slices"
	"strings"
)

// collect sets the server's endpoints and what follows from them.
func (s *Server) collect(list []endpoint) {
	s.endpoints = list
	for _, e := range list {
		if e.public {
			s.guard.public = append(s.guard.public, e.path)
		}
		if e.operation.file {
			prefix, _, _ := strings.Cut(e.path, "{")
			s.uploads = append(s.uploads, e.method+" "+prefix)
		}
	}
	s.mux = s.routes()
}

// isPublic reports whether a request needs no API key and is served while the server stops.
func (g guard) isPublic(r *http.Request) bool { return slices.Contains(g.public, r.URL.Path) }

// isUpload reports whether a request's body is a file, which has its own limits.
func (s *Server) isUpload(r *http.Request) bool {
	return slices.ContainsFunc(s.uploads, func(prefix string) bool {
		return strings.HasPrefix(r.Method+" "+r.URL.Path, prefix)
	})
}

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, r := range s.endpoints {
		mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, req *http.Request) {
			if err := r.handle(w, req); err != nil {
				s.fail(w, req, err)
			}
		})
		methods[r.path] = append(methods[r.path], r.method)
		if r.method == "GET" {
			methods[r.path] = append(methods[r.path], "HEAD")
		}
	}
	// These patterns match the remaining methods: patterns with a method take precedence.
	for path, allowed := range methods {
		slices.Sort(allowed)
		list := strings.Join(slices.Compact(allowed), ", ")
		mux.HandleFunc(path, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Allow", list)
			s.fail(w, req, failf(http.StatusMethodNotAllowed, "%s %s is not supported: use %s", clip(req.Method), req.URL.Path,
				list))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		s.fail(w, req, failf(http.StatusNotFound, "%s not found", clip(req.URL.Path)))
	})
	return mux
}
