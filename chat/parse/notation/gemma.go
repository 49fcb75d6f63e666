package notation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// GemmaQuote encloses strings in Gemma's notation.
const GemmaQuote = `<|"|>`

// Gemma converts {key:value,...}, in which keys have no quotes and strings are enclosed in GemmaQuote. types are those
// of the values. The end of the text closes open brackets and strings.
func Gemma(s string, types map[string][]string) (json.RawMessage, error) {
	g := gemma{s: s, types: types}
	var b bytes.Buffer
	if err := g.object(&b, 0); err != nil {
		return nil, err
	}
	if g.space(); g.s != "" {
		return nil, fmt.Errorf("unexpected %q after the arguments", excerpt(g.s))
	}
	return b.Bytes(), nil
}

// gemma translates Gemma's notation of arguments to JSON.
type gemma struct {
	s     string              // remaining input
	types map[string][]string // of the arguments
}

// maxDepth bounds the nesting of values.
const maxDepth = 200

func (g *gemma) space() { g.s = strings.TrimLeft(g.s, Spaces) }

// take consumes text if the input begins with it.
func (g *gemma) take(text string) bool {
	rest, ok := strings.CutPrefix(g.s, text)
	g.s = rest
	return ok
}

func (g *gemma) object(b *bytes.Buffer, depth int) error {
	return g.list(b, depth, "{", "}", func(first bool) error {
		key, err := g.key()
		if err != nil {
			return err
		}
		if !first {
			b.WriteByte(',')
		}
		b.Write(Quote(key))
		b.WriteByte(':')
		var types []string
		if depth == 0 {
			types = g.types[key]
		}
		return g.value(b, depth+1, types)
	})
}

// list parses items between brackets, separated by commas. A trailing comma is allowed.
func (g *gemma) list(b *bytes.Buffer, depth int, open, end string, item func(first bool) error) error {
	if depth > maxDepth {
		return errors.New("nested too deeply")
	}
	g.take(open)
	b.WriteString(open)
	for first := true; ; first = false {
		if g.space(); g.s == "" || g.take(end) {
			break
		}
		if !first && !g.take(",") {
			return fmt.Errorf("expected a comma, got %q", excerpt(g.s))
		}
		if g.space(); g.s == "" || g.take(end) {
			break
		}
		if err := item(first); err != nil {
			return err
		}
	}
	b.WriteString(end)
	return nil
}

func (g *gemma) key() (string, error) {
	if s, ok, err := g.str(); ok || err != nil {
		g.space()
		if !g.take(":") {
			return "", fmt.Errorf("expected a colon, got %q", excerpt(g.s))
		}
		return s, err
	}
	at := strings.IndexAny(g.s, ":{}[],")
	if at <= 0 || g.s[at] != ':' {
		return "", fmt.Errorf("expected a key, got %q", excerpt(g.s))
	}
	key := strings.Trim(g.s[:at], Spaces)
	g.s = g.s[at+1:]
	return key, nil
}

// str parses a string in Gemma's or JSON's quotes. It returns false if there is none.
func (g *gemma) str() (string, bool, error) {
	if g.take(GemmaQuote) {
		text, rest, _ := strings.Cut(g.s, GemmaQuote)
		g.s = rest
		return text, true, nil
	}
	if !strings.HasPrefix(g.s, `"`) {
		return "", false, nil
	}
	end := jsonString(g.s)
	if end < 0 {
		text := g.s[1:]
		g.s = ""
		return text, true, nil
	}
	var text string
	if err := json.Unmarshal([]byte(EscapeControls(g.s[:end])), &text); err != nil {
		return "", true, err
	}
	g.s = g.s[end:]
	return text, true, nil
}

// jsonString returns the length of the JSON string at the start of s; -1 if it is unterminated.
func jsonString(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

func (g *gemma) value(b *bytes.Buffer, depth int, types []string) error {
	g.space()
	switch {
	case strings.HasPrefix(g.s, "{"):
		return g.object(b, depth)
	case strings.HasPrefix(g.s, "["):
		return g.list(b, depth, "[", "]", func(first bool) error {
			if !first {
				b.WriteByte(',')
			}
			return g.value(b, depth+1, nil)
		})
	}
	if s, ok, err := g.str(); ok || err != nil {
		b.Write(Quote(s))
		return err
	}
	at := strings.IndexAny(g.s, ",}]")
	if at < 0 {
		at = len(g.s)
	}
	word := strings.Trim(g.s[:at], Spaces)
	g.s = g.s[at:]
	switch {
	case word == "":
		b.WriteString("null")
	case word != "" && json.Valid([]byte(word)):
		b.WriteString(word)
	default: // a string without quotes
		b.Write(Typed(word, types))
	}
	return nil
}
