package openapi

import "reflect"

// Operation describes a route in the OpenAPI document. Its types are those that the route's handler decodes and
// encodes.
type Operation struct {
	Summary  string
	Request  reflect.Type // of the body; nil: none
	Required []string     // required members of the request
	File     bool         // the body is a file
	Form     []string     // parts of a form that has the file, beside "file"; nil: the body is the file itself
	Query    string       // names and descriptions of query parameters, separated by a space, one a line
	Header   string       // that chooses this operation of a route; "": none
	Response reflect.Type // of the response; nil: text or nothing
	Stream   reflect.Type // of a message of the stream; nil: no stream
	Media    string       // media type of a response that is not JSON; else ""
	Created  bool         // the status may be 201
}
