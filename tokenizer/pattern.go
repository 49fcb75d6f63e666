package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// pattern finds its matches in a text.
type pattern interface {
	// matches calls found with the bounds of each match, in order and without overlap. It reports empty matches where the
	// reference does: not right after another match.
	matches(s string, found func(start, end int) error) error
}

// newPattern parses the "pattern" of a Split or Replace.
func newPattern(c component) (pattern, error) {
	v, err := c.field("pattern", objectNode)
	if err != nil {
		return nil, err
	}
	if len(v.keys) != 1 || v.list[0].kind != stringNode {
		return nil, c.invalid("has a pattern that is not {\"String\": ...} or {\"Regex\": ...}")
	}
	switch v.keys[0] {
	case "String":
		return literal(v.list[0].text), nil
	case "Regex":
		return newRegex(c, v.list[0].text)
	}
	return nil, c.unsupported("with a pattern of kind %q is not supported", v.keys[0])
}

// newRegex prefers a hand-written scanner, which takes linear time and is several times faster than the general engine.
func newRegex(c component, expr string) (pattern, error) {
	if s, ok := newScanner(expr); ok {
		return s, nil
	}
	return compileRegex(c, expr)
}

// literal matches itself. The empty literal matches before each character and at the end.
type literal string

func (l literal) matches(s string, found func(start, end int) error) error {
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

// runePattern matches single characters.
type runePattern func(c rune) bool

func (p runePattern) matches(s string, found func(start, end int) error) error {
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		if p(c) {
			if err := found(i, i+n); err != nil {
				return err
			}
		}
		i += n
	}
	return nil
}
