// Package pattern finds matches of a tokenizer's patterns: strings, regular expressions and kinds of characters.
//
// Contract: regular expressions have the reference's syntax and meaning (Oniguruma, Ruby syntax). The published ones
// run as scanners, in linear time; the general engine has a time limit and then returns ErrTimeout. What may have
// another meaning is ErrUnsupported. Patterns are immutable and safe for concurrent use.
package pattern

import (
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
)

// Pattern finds its matches in a text.
type Pattern interface {
	// Matches calls found with the bounds of each match, in order and without overlap. It reports empty matches where the
	// reference does: not right after another match. It spends its work.
	Matches(m *work.Meter, s string, found func(start, end int) error) error
}

// New parses the "pattern" of a Split or Replace.
func New(c jsonfile.Component) (Pattern, error) {
	v, err := c.Field("pattern", jsonfile.ObjectNode)
	if err != nil {
		return nil, err
	}
	if len(v.Keys) != 1 || v.List[0].Kind != jsonfile.StringNode {
		return nil, c.Invalid("has a pattern that is not {\"String\": ...} or {\"Regex\": ...}")
	}
	switch v.Keys[0] {
	case "String":
		if n := len(v.List[0].Text); n > limits.TokenBytes {
			return nil, c.Unsupported("with a pattern of %d bytes is not supported: at most %d", n, limits.TokenBytes)
		}
		return Literal(v.List[0].Text), nil
	case "Regex":
		return newRegex(c, v.List[0].Text)
	}
	return nil, c.Unsupported("with a pattern of kind %q is not supported", v.Keys[0])
}

// newRegex prefers a hand-written scanner, which takes linear time and is several times faster than the general engine.
func newRegex(c jsonfile.Component, expr string) (Pattern, error) {
	if s, ok := NewScanner(expr); ok {
		return s, nil
	}
	return CompileRegex(c, expr)
}

// Literal matches itself. The empty literal matches before each character and at the end.
type Literal string

func (l Literal) Matches(m *work.Meter, s string, found func(start, end int) error) error {
	if err := m.Spend(len(s)); err != nil {
		return err
	}
	if l == "" {
		for i := range s {
			if err := found(i, i); err != nil {
				return err
			}
		}
		return found(len(s), len(s))
	}
	for at := 0; ; {
		i := strings.Index(s[at:], string(l))
		if i < 0 {
			return nil
		}
		if err := found(at+i, at+i+len(l)); err != nil {
			return err
		}
		at += i + len(l)
	}
}

// Runes matches single characters.
type Runes func(c rune) bool

func (p Runes) Matches(m *work.Meter, s string, found func(start, end int) error) error {
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		if err := m.Spend(4); err != nil {
			return err
		}
		if p(c) {
			if err := found(i, i+n); err != nil {
				return err
			}
		}
		i += n
	}
	return nil
}
