package gguf

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/quantize/ggml"
)

// ErrFormat reports a file that is not a valid GGUF file.
var ErrFormat = errors.New("invalid GGUF file")

// Header is what a file holds before its data.
type Header struct {
	Version  int
	Metadata Metadata
	Tensors  []Tensor // in the order of the file
	Data     int64    // offset of the data region
}

// Tensor describes a tensor.
type Tensor struct {
	Name   string
	Type   ggml.Type
	Shape  []int64 // row-major: the last dimension is contiguous, unlike in the file
	Offset int64   // of the data, from the start of the file
	Size   int64   // bytes
}

// Lookup finds a tensor by name.
func (h *Header) Lookup(name string) (Tensor, bool) {
	i := slices.IndexFunc(h.Tensors, func(t Tensor) bool { return t.Name == name })
	if i < 0 {
		return Tensor{}, false
	}
	return h.Tensors[i], true
}

// Metadata holds the values by key.
type Metadata struct {
	keys   []string // in the order of the file
	values map[string]Value
}

// Keys returns the keys in the order of the file. The caller must not change them.
func (m Metadata) Keys() []string { return m.keys }

// Lookup returns the value of a key.
func (m Metadata) Lookup(key string) (Value, bool) {
	v, ok := m.values[key]
	return v, ok
}

// Text returns a string. A missing key is "", another type an error.
func (m Metadata) Text(key string) (string, error) {
	v, ok := m.values[key]
	if !ok {
		return "", nil
	}
	if v.Kind != String || v.IsArray {
		return "", wrongKind(key, v, "a string")
	}
	return v.strings[0], nil
}

// required returns a value that has to be there.
func (m Metadata) required(key string) (Value, error) {
	v, ok := m.values[key]
	if !ok {
		return Value{}, fmt.Errorf("%w: metadata %s is missing", ErrFormat, key)
	}
	return v, nil
}

// Int returns an integer. A missing key is an error wrapping ErrFormat, as is another type.
func (m Metadata) Int(key string) (int64, error) {
	v, err := m.required(key)
	if err != nil {
		return 0, err
	}
	n, ok := v.Int(0)
	switch {
	case !ok && !v.IsArray && v.Kind == Uint64:
		return 0, fmt.Errorf("%w: metadata %s is %v, want less than 2^63", ErrFormat, key, v.Plain())
	case !ok || v.IsArray:
		return 0, wrongKind(key, v, "an integer")
	}
	return n, nil
}

// Float returns a finite number. A missing key is an error wrapping ErrFormat, as is another type.
func (m Metadata) Float(key string) (float64, error) {
	v, err := m.required(key)
	if err != nil {
		return 0, err
	}
	x, ok := v.Float(0)
	switch {
	case !ok || v.IsArray:
		return 0, wrongKind(key, v, "a number")
	case x-x != 0:
		return 0, fmt.Errorf("%w: metadata %s is %v, want a finite number", ErrFormat, key, x)
	}
	return x, nil
}

// Bool returns a bool. A missing key is the given value, another type an error.
func (m Metadata) Bool(key string, missing bool) (bool, error) {
	v, ok := m.values[key]
	if !ok {
		return missing, nil
	}
	b, ok := v.Bool(0)
	if !ok || v.IsArray {
		return false, wrongKind(key, v, "a bool")
	}
	return b, nil
}

// Texts returns an array of strings. A missing key is nil, another type an error.
func (m Metadata) Texts(key string) ([]string, error) {
	v, ok := m.values[key]
	if !ok {
		return nil, nil
	}
	if v.Kind != String || !v.IsArray {
		return nil, wrongKind(key, v, "an array of strings")
	}
	return v.strings, nil
}

func wrongKind(key string, v Value, want string) error {
	return fmt.Errorf("%w: metadata %s is of type %v, want %s", ErrFormat, key, v, want)
}
