package server

import (
	"net/http"

	"github.com/ingotml/ingot/server/openapi"
	"github.com/ingotml/ingot/server/wire"
)

// Endpoint is a route with everything about it.
type Endpoint struct {
	Method, Path string // in the form of net/http's patterns
	// Header is a header whose requests the endpoint serves. Those without it go to the endpoint of the same route that
	// has none: two APIs share a route, and only one's clients send the header.
	Header string
	// Handle serves a request. If it returns an error, the error is sent to the client.
	Handle    func(w http.ResponseWriter, r *http.Request) error
	Public    bool              // needs no API key, and is served while the server stops
	Operation openapi.Operation // describes the endpoint in the OpenAPI document
	// Samples are requests that tests send to the models "plain" and "talk" and whose responses they compare with the
	// document. At least one has each type of response.
	Samples []Sample
}

// API is a set of endpoints with what they have in common.
type API struct {
	Endpoints []Endpoint
	Schemas   openapi.Special // of the endpoints' types with their own JSON methods
	Dialects  wire.Dialects   // forms of errors; none: those of other APIs, by path
}

// Sample is a request to a model with a known output.
type Sample struct {
	Path   string // if it differs from the endpoint's
	Stores string // body of a POST before it, of something stored whose id is the path's
	Body   string
	Output []string // of the model, in pieces; nil: any
}

// CallingOutput is an output with thinking, text and a call of the tool f.
var CallingOutput = []string{"<think>\nhm", "</think>\n", "It is",
	` so.<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>`}
