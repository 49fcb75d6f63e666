// Package notation converts the notations in which models write values to JSON.
//
// What it reads is untrusted: the nesting of values is bounded.
package notation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/internal/limits/clip"
)

// Spaces are the characters that count as white space.
const Spaces = " \t\n\r\v\f"

func isSpace(b byte) bool { return strings.IndexByte(Spaces, b) >= 0 }

// excerpt shortens text quoted in a message.
func excerpt(s string) string { return clip.Text(s, 40) }

// Compact validates a JSON value and removes insignificant white space. It escapes control characters inside strings,
// which models write although JSON forbids them.
func Compact(text string) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(EscapeControls(strings.ToValidUTF8(text, "\uFFFD")))); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// EscapeControls escapes control characters inside the strings of a JSON text.
func EscapeControls(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r < ' ' }) < 0 {
		return text
	}
	var b strings.Builder
	var s Scan
	for i := range len(text) {
		c := text[i]
		if s.str && c < ' ' {
			fmt.Fprintf(&b, `\u%04x`, c)
			s.esc = false
			continue
		}
		s.Add(c)
		b.WriteByte(c)
	}
	return b.String()
}

// Typed converts a value to the narrowest matching type of its schema, or to a string if no type matches.
func Typed(value string, types []string) json.RawMessage {
	if strings.EqualFold(value, "null") {
		return json.RawMessage("null")
	}
	has := func(name string) bool { return slices.Contains(types, name) }
	if has("boolean") {
		switch lower := strings.ToLower(value); {
		case lower == "true" || lower == "false":
			return json.RawMessage(lower)
		case !slices.ContainsFunc(types, func(t string) bool { return t != "boolean" }):
			return json.RawMessage("false")
		}
	}
	if has("integer") {
		if i, err := strconv.ParseInt(value, 10, 64); err == nil {
			return strconv.AppendInt(nil, i, 10)
		}
	}
	if has("number") {
		if f, err := strconv.ParseFloat(value, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return number(f)
		}
	}
	for _, kind := range []struct{ name, open string }{{"array", "["}, {"object", "{"}} {
		if text := strings.Trim(value, Spaces); has(kind.name) && strings.HasPrefix(text, kind.open) {
			if v, rest, err := pythonValue(text, 0); err == nil && rest == "" {
				return v
			}
		}
	}
	return Quote(value)
}

// number formats a number; integral numbers become integers.
func number(f float64) json.RawMessage {
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return strconv.AppendInt(nil, int64(f), 10)
	}
	out, _ := json.Marshal(f)
	return out
}

// Quote returns a JSON string. Invalid UTF-8 becomes U+FFFD.
func Quote(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // strings always encode
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
