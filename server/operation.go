package server

import "reflect"

// operation describes a route in the OpenAPI document. Its types are those that the route's handler decodes and
// encodes.
type operation struct {
	summary  string
	request  reflect.Type // of the body; nil: none
	required []string     // required members of the request
	file     bool         // the body is a file
	query    string       // name and description of a query parameter, separated by a space
	response reflect.Type // of the response; nil: text or nothing
	stream   reflect.Type // of a message of the stream; nil: no stream
	media    string       // media type of a response that is not JSON; else ""
	created  bool         // the status may be 201
}
