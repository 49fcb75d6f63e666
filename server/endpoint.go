package server

import "net/http"

// endpoint is a route with everything about it.
type endpoint struct {
	method, path string // in the form of net/http's patterns
	// handle serves a request. If it returns an error, the error is sent to the client.
	handle    func(w http.ResponseWriter, r *http.Request) error
	public    bool      // needs no API key, and is served while the server stops
	operation operation // describes the endpoint in the OpenAPI document
	// samples are requests that tests send to the models "plain" and "talk" and whose responses they compare with the
	// document. At least one has each type of response.
	samples []sample
}

// sample is a request to a model with a known output.
type sample struct {
	path   string // if it differs from the endpoint's
	body   string
	output []string // of the model, in pieces; nil: any
}

// callingOutput is an output with thinking, text and a call of the tool f.
var callingOutput = []string{"<think>\nhm", "</think>\n", "It is",
	` so.<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>`}
