package jsonfit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// Error says what is wrong with a field of a request.
type Error struct {
	Path Path   // from the value that is decoded; empty: it is the value itself
	Text string // without the path

	// Named says that Text names the field itself.
	Named   bool
	foreign bool // of a type's own method
}

// Step leads into an object, if Name is not empty, or into an array.
type Step struct {
	Name  string
	Index int
}

// Path leads to a field.
type Path []Step

// most is how much of a client's text a message quotes.
const most = 60

// String returns the path in the form messages[2].content.
func (p Path) String() string {
	var b strings.Builder
	for _, s := range p {
		switch {
		case s.Name == "":
			b.WriteString("[" + strconv.Itoa(s.Index) + "]")
		case b.Len() > 0:
			b.WriteString("." + clip.Line(s.Name, most))
		default:
			b.WriteString(clip.Line(s.Name, most))
		}
	}
	return b.String()
}

// Dotted returns the path in the form messages.2.content.
func (p Path) Dotted() string {
	var list []string
	for _, s := range p {
		if s.Name == "" {
			s.Name = strconv.Itoa(s.Index)
		}
		list = append(list, clip.Line(s.Name, most))
	}
	return strings.Join(list, ".")
}

// Error returns the message with the path as String returns it.
func (e *Error) Error() string { return e.With(e.Path.String()) }

// With returns the message with another form of the path.
func (e *Error) With(path string) string {
	if path == "" {
		return e.Text
	}
	return path + ": " + e.Text
}

// Errorf returns an error about the value that is decoded.
func Errorf(format string, args ...any) error { return &Error{Text: fmt.Sprintf(format, args...)} }

// Wrong returns an error about a value that is not what is wanted, such as "a string or an array of strings".
func Wrong(value []byte, want string) error { return Errorf("%s, want %s", describe(value), want) }

// describe says what a JSON value is.
func describe(value []byte) string {
	text := strings.TrimSpace(string(value[:min(len(value), most+8)]))
	switch {
	case text == "":
		return "nothing"
	case text == "null":
		return "null"
	case text == "true", text == "false":
		return "a JSON boolean"
	case text[0] == '"':
		return "a JSON string"
	case text[0] == '[':
		return "a JSON array"
	case text[0] == '{':
		return "a JSON object"
	}
	return "a JSON number " + clip.Line(text, most)
}

func quoted(name string) string { return strconv.Quote(clip.Line(name, most)) }

// In returns an error of a value within the one that is decoded: path are names of fields and indexes of arrays. It
// returns nil for nil.
func In(err error, path ...any) error {
	for _, step := range slices.Backward(path) {
		switch step := step.(type) {
		case string:
			err = in(err, Step{Name: step})
		case int:
			err = in(err, Step{Index: step})
		}
	}
	return err
}

func in(err error, s Step) error {
	var invalid *syntaxError
	if err == nil || errors.As(err, &invalid) {
		return err
	}
	e, ok := err.(*Error)
	switch {
	case !ok:
		return in(own(err), s)
	case e.foreign && len(e.Path) == 0 && names(e.Text, s.Name):
		return &Error{Text: e.Text, Named: true}
	}
	return &Error{append(Path{s}, e.Path...), e.Text, e.Named, false}
}

// names reports whether a message begins with a field's name, so that it need not be repeated.
func names(text, field string) bool {
	rest, ok := strings.CutPrefix(text, field)
	next, _ := utf8.DecodeRuneInString(rest)
	return ok && field != "" && next != '_' && !unicode.IsLetter(next) && !unicode.IsDigit(next)
}

// own returns the error of a type's own method as an *Error without words of encoding/json.
func own(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*Error); ok {
		return e
	}
	text := err.Error()
	if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		text = strings.Replace(text, kind.Error(), pyjson.Words(kind, nil), 1)
	}
	return &Error{Text: text, foreign: true}
}
