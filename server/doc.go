// Package server is the HTTP face of models: clients that were written for others find what they speak.
//
// A [Server] is an http.Handler over the models of a store. A request names a model; the server looks up what the name means now, makes
// the prompt (package talk), has the model loaded (package pool: each in a process of its own, see package runner), and writes
// down what it says. It holds no model itself and needs no engine.
//
// Contract:
//   - A route is one line in routes and one file; what all share (who may ask, how much, panics, errors) is around them and not in them.
//   - An error before the first byte of an answer has a status of HTTP and one line of JSON, in the form of the API that the path belongs
//     to; after that it is the stream's last message.
//   - A panic in one request is that request's 500. A model's process that dies ends the requests that it had, with an error that says how.
//   - A client that leaves ends its request in the model within a step. A client that does not read holds up nobody else.
//   - Without an API key only pages of this machine may ask from a browser, and only under names that cannot be made to mean this
//     machine by somebody else (DNS rebinding).
//   - Nothing in a request is a path of a file.
//   - The bodies of all requests together, with what they are decoded into, take bounded memory.
//   - Browsers get a page (package page), which uses the API as any other client does.
package server
