// Package server is the core of the HTTP server: models, generation jobs, limits, access control and lifecycle. The
// APIs of Ollama, OpenAI and Anthropic are packages beneath it; package all puts them together.
//
// A [Server] is an http.Handler over the models of a store. A request names a model. The server resolves the name,
// builds the prompt (package prompt), gets the model loaded (package pool; each model runs in its own process, see
// package runner) and writes the generated text. It holds no model itself and needs no engine.
//
// Contract:
//   - An endpoint is one [Endpoint]: route, handler, operation of the OpenAPI document and samples. The common ones are
//     here, the others in their API's package.
//   - An [API] depends on the core and on no other API.
//   - What all endpoints share (access control, size limits, panics, errors) is in ServeHTTP, not in handlers.
//   - An error before the first byte of a response has an HTTP status and one line of JSON, in the form of the API that
//     the path belongs to. After that it is the last message of the stream.
//   - A panic in a request results in a 500 for that request only. If a model's process dies, its requests end with an
//     error that says how it died.
//   - If a client disconnects, the model stops working on its request within one step. A client that does not read does
//     not block others.
//   - Without an API key, browsers may send requests only from pages of this machine, and only to host names that
//     nobody else can point at this machine (DNS rebinding).
//   - Nothing in a request is used as a file path.
//   - The bodies of all requests together, with the values decoded from them and the responses that their clients have
//     not read, take bounded memory, of which each client has a share.
//   - Browsers get a web page (package page), which uses the API like any other client.
package server
