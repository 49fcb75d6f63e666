package server

import (
	"maps"
	"reflect"
	"strings"

	"github.com/ingotml/ingot/server/identity"
	"github.com/ingotml/ingot/server/openapi"
	"github.com/ingotml/ingot/server/page"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// common returns the endpoints that belong to no API: the web page, health, metrics, the OpenAPI document and the proof
// of identity. It also has the schemas of types that APIs share.
func (s *Server) common() API {
	shared := maps.Clone(params.Schemas)
	maps.Copy(shared, coreSchemas)
	return API{Schemas: shared, Endpoints: []Endpoint{
		{Method: "GET", Path: "/{$}", Handle: s.root,
			Operation: openapi.Operation{Summary: "Get the web page if HTML is accepted by name, else a line of text",
				Media: wire.TextType},
		},
		{Method: "GET", Path: page.Prefix + "{name}", Handle: s.page,
			Operation: openapi.Operation{Summary: "Get a file of the web page; needs no key", Media: wire.AnyType},
		},
		{Method: "GET", Path: "/healthz", Handle: s.health, Public: true,
			Operation: openapi.Operation{Summary: "Check that the process is alive; needs no key", Media: wire.TextType},
		},
		{Method: "GET", Path: "/readyz", Handle: s.ready, Public: true,
			Operation: openapi.Operation{Summary: "Check that requests are accepted; needs no key", Media: wire.TextType},
		},
		{Method: "GET", Path: "/metrics", Handle: s.getMetrics,
			Operation: openapi.Operation{Summary: "Get metrics in Prometheus' text format", Media: wire.TextType},
		},
		{Method: "GET", Path: "/openapi.json", Handle: s.openAPI,
			Operation: openapi.Operation{Summary: "Get this document", Response: reflect.TypeFor[map[string]any]()},
			Samples:   []Sample{{}},
		},
		{Method: "GET", Path: identity.Path, Handle: s.prove, Public: true,
			Operation: openapi.Operation{
				Summary: "Prove to a client of the same user that this server serves its store; needs no key",
				Query:   "nonce 64 random hexadecimal digits", Response: reflect.TypeFor[identity.ProofJSON]()},
			Samples: []Sample{{Path: "/api/prove?nonce=" + strings.Repeat("0a", 32)}},
		},
	}}
}
