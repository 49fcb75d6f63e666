// Package openapi builds an OpenAPI document (https://spec.openapis.org/oas/v3.1.0) from the Go types that handlers
// decode and encode.
//
// Contract: the schema of a request allows further members; that of a response lists all of them. A type with its own
// JSON methods needs a [Special] schema; [Document.Whole] reports those without. The document depends on nothing but
// the operations that were added, in their order.
package openapi
