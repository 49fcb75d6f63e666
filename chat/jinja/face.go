package jinja

import "github.com/ingotml/ingot/chat/jinja/value"

// What callers pass, read and distinguish. Package value defines it.
type (
	Value  = value.Value
	Dict   = value.Dict
	List   = value.List
	Limits = value.Limits
	Error  = value.Error
)

// Errors that callers distinguish.
var (
	ErrSyntax = value.ErrSyntax // the template does not compile
	ErrRender = value.ErrRender // the render failed, or the template raised an exception
	ErrLimit  = value.ErrLimit  // the text or the render exceeds a limit
	ErrInput  = value.ErrInput  // variables are not valid JSON, or not a JSON object
)

// NewDict returns an empty dict.
func NewDict() *Dict { return value.NewDict() }

// NewList returns a list of items.
func NewList(items ...Value) *List { return value.NewList(items...) }

// DecodeJSON decodes a JSON value, with the keys of objects in order. The error wraps ErrInput.
func DecodeJSON(data []byte) (Value, error) { return value.DecodeJSON(data) }

// DecodeVars decodes a JSON object with the variables of a template. The error wraps ErrInput.
func DecodeVars(data []byte) (*Dict, error) { return value.DecodeVars(data) }

// EncodeJSON encodes a value like the filter tojson.
func EncodeJSON(v Value) (string, error) { return value.EncodeJSON(v) }

// DefaultLimits returns the limits for variables with this Size.
func DefaultLimits(size int64) Limits { return value.DefaultLimits(size) }

// Size estimates the memory of a value in bytes, in time linear in its parts.
func Size(v Value) int64 { return value.Size(v) }
