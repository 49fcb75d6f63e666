package server

import (
	"reflect"
	"strings"

	"github.com/ingotml/ingot/server/identity"
	"github.com/ingotml/ingot/server/page"
)

// coreEndpoints are the endpoints that belong to no API: the web page, health, metrics, the OpenAPI document and the
// proof of identity.
func (s *Server) coreEndpoints() []endpoint {
	return []endpoint{
		{method: "GET", path: "/{$}", handle: s.root,
			operation: operation{summary: "Get the web page if HTML is accepted by name, else a line of text", media: textType},
		},
		{method: "GET", path: page.Prefix + "{name}", handle: s.page,
			operation: operation{summary: "Get a file of the web page; needs no key", media: anyType},
		},
		{method: "GET", path: "/healthz", handle: s.health, public: true,
			operation: operation{summary: "Check that the process is alive; needs no key", media: textType},
		},
		{method: "GET", path: "/readyz", handle: s.ready, public: true,
			operation: operation{summary: "Check that requests are accepted; needs no key", media: textType},
		},
		{method: "GET", path: "/metrics", handle: s.getMetrics,
			operation: operation{summary: "Get metrics in Prometheus' text format", media: textType},
		},
		{method: "GET", path: "/openapi.json", handle: s.openAPI,
			operation: operation{summary: "Get this document", response: reflect.TypeFor[map[string]any]()},
			samples:   []sample{{}},
		},
		{method: "GET", path: identity.Path, handle: s.prove, public: true,
			operation: operation{summary: "Prove to a client of the same user that this server serves its store; needs no key",
				query: "nonce 64 random hexadecimal digits", response: reflect.TypeFor[identity.ProofJSON]()},
			samples: []sample{{path: "/api/prove?nonce=" + strings.Repeat("0a", 32)}},
		},
	}
}
