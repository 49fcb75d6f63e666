// Package pyjson decodes the JSON files of checkpoints, which Python wrote and people edit.
//
// Contract:
//   - Infinity, -Infinity and NaN, which Python writes and JSON lacks, are read as the objects that transformers 5
//     writes for them. They do no harm where a key has no influence, and elsewhere are not a number.
//   - Errors are for people: what the file has, in JSON's words, and what it should have; never types of this program.
//     They do not name the file, which the caller knows.
//   - Files that are too large to build are package jsonread's.
package pyjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/ingotml/ingot/internal/limits/clip"
)

// Unmarshal decodes a file, or a part of one, into v.
func Unmarshal(data []byte, v any) error {
	data = Plain(data)
	if err := json.Unmarshal(data, v); err != nil {
		if wrong, ok := err.(*json.UnmarshalTypeError); ok {
			wrong.Field = withoutEmbedded(reflect.TypeOf(v).Elem(), wrong.Field)
		}
		return errors.New(Words(err, data))
	}
	return nil
}

// withoutEmbedded returns a path of names in JSON without the structs that t embeds, which package json puts first.
func withoutEmbedded(t reflect.Type, path string) string {
	for t.Kind() == reflect.Struct {
		first, rest, _ := strings.Cut(path, ".")
		f, ok := t.FieldByName(first)
		if !ok || !f.Anonymous || rest == "" {
			break
		}
		t, path = f.Type, rest
	}
	return path
}

// Check returns an error if data is not JSON.
func Check(data []byte) error {
	var v json.RawMessage
	return Unmarshal(data, &v)
}

const maxQuoted = 80

// Words describes an error of package json. data is what was decoded, for the line.
func Words(err error, data []byte) string {
	switch e := err.(type) {
	case *json.SyntaxError:
		if e.Offset >= int64(len(bytes.TrimRight(data, " \t\r\n"))) && strings.HasPrefix(e.Error(), "unexpected end") {
			return "the JSON ends too early"
		}
		at := min(max(e.Offset, 0), int64(len(data)))
		return fmt.Sprintf("line %d: %v", 1+bytes.Count(data[:at], []byte("\n")), err)
	case *json.UnmarshalTypeError:
		text := fmt.Sprintf("a JSON %s, want %s", clip.Line(e.Value, maxQuoted), Kind(e.Type))
		if e.Field != "" {
			text = clip.Line(e.Field, maxQuoted) + ": " + text
		}
		return text
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the JSON ends too early"
	}
	return err.Error()
}

// Kind names a type as JSON does, with its article.
func Kind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		if t == reflect.TypeFor[json.Number]() {
			return "a number"
		}
		return "a string"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Pointer:
		return Kind(t.Elem())
	case reflect.Interface:
		return "another value"
	}
	return "an integer"
}
