package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/ingotml/ingot/server/identity"
	"github.com/ingotml/ingot/server/page"
)

// route is an endpoint. If its handler returns an error, the error is sent to the client.
type route struct {
	method, path string
	handle       func(w http.ResponseWriter, r *http.Request) error
}

func (s *Server) list() []route {
	return []route{
		{"GET", "/{$}", s.root},
		{"GET", page.Prefix + "{name}", s.page},
		{"GET", "/healthz", s.health},
		{"GET", "/readyz", s.ready},
		{"GET", "/metrics", s.getMetrics},
		{"GET", "/openapi.json", s.openAPI},

		{"GET", "/api/version", s.version},
		{"GET", identity.Path, s.prove},
		{"GET", "/api/tags", s.tags},
		{"GET", "/api/ps", s.ps},
		{"POST", "/api/show", s.show},
		{"POST", "/api/copy", s.copy},
		{"DELETE", "/api/delete", s.delete},
		{"POST", "/api/create", s.create},
		{"HEAD", blobPath + "{digest}", s.headBlob},
		{"POST", blobPath + "{digest}", s.putBlob},
		{"POST", "/api/pull", s.pull},
		{"POST", "/api/push", s.push},
		{"GET", "/api/layers", s.layers},
		{"POST", "/api/generate", s.generate},
		{"POST", "/api/chat", s.chat},
		{"POST", "/api/embed", s.embed},
		{"POST", "/api/embeddings", s.embeddings},

		{"POST", "/v1/chat/completions", s.chatCompletions},
		{"POST", "/v1/completions", s.completions},
		{"POST", "/v1/responses", s.responses},
		{"POST", "/v1/messages", s.messages},
		{"POST", "/v1/messages/count_tokens", s.countTokens},
		{"POST", "/v1/tokenize", s.tokenize},
		{"POST", "/v1/detokenize", s.detokenize},
		{"POST", "/v1/embeddings", s.openaiEmbed},
		{"GET", "/v1/models", s.listModels},
		{"GET", "/v1/models/{id...}", s.getModel},
	}
}

// publicPaths need no API key and are served while the server stops. The page's files need no key either.
var publicPaths = []string{"/healthz", "/readyz", identity.Path}

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, r := range s.list() {
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
