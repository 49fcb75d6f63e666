// Package normalize changes text before it is split and encoded.
//
// Contract: a Normalizer returns what the reference's returns for the same text, of at most MaxBytes bytes. It is
// immutable and safe for concurrent use.
package normalize

import (
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/fault"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
	"github.com/ingotml/ingot/tokenizer/pattern"
	"golang.org/x/text/unicode/norm"
)

// Normalizer transforms text before it is split; nil is none.
type Normalizer interface {
	// Normalize clears head if the start of the result does not stem from the start of s. Metaspace asks whether a piece
	// begins the text, and the reference decides that by the original offset of its first byte.
	Normalize(s string, head *bool) (string, error)
}

// MaxBytes bounds the output of a normalizer for n bytes: a file could replace each character by a megabyte.
func MaxBytes(n int) int { return min(32*n+1<<20, 1<<29) }

func errNormalized(n int) error {
	const format = "tokenizer: the normalizer expands a text of %d bytes to more than %d"
	return fault.Errorf(fault.ErrInvalid, format, n, MaxBytes(n))
}

func New(n *jsonfile.Node) (Normalizer, error) {
	c, err := jsonfile.AsComponent(n, "normalizer")
	if err != nil {
		return nil, err
	}
	return buildNormalizer(c)
}

func buildNormalizer(c jsonfile.Component) (Normalizer, error) {
	switch c.Name {
	case "NFC":
		return unicodeForm{norm.NFC}, nil
	case "NFD":
		return unicodeForm{norm.NFD}, nil
	case "NFKC":
		return unicodeForm{norm.NFKC}, nil
	case "NFKD":
		return unicodeForm{norm.NFKD}, nil
	case "Prepend":
		text, err := c.Str("prepend")
		return prepend(text), err
	case "Replace":
		p, err := pattern.New(c)
		if err != nil {
			return nil, err
		}
		if l, ok := p.(pattern.Literal); ok && l == "" {
			return nil, c.Invalid("replaces an empty string")
		}
		content, err := c.Str("content")
		return replace{p, content}, err
	case "Lowercase":
		return lower{}, nil
	case "StripAccents":
		return dropping(func(c rune) bool { return chars.Properties().Is(c, chars.PropMark) }), nil
	case "Strip":
		return newStrip(c)
	case "Nmt":
		return normalizers{dropping(nmtDrops), mapping(nmtSpace)}, nil
	case "ByteLevel":
		return byteLetters{}, nil
	case "Precompiled":
		return newPrecompiled(c)
	case "BertNormalizer":
		return newBertNormalizer(c)
	case "Sequence":
		parts, err := c.Parts("normalizers")
		if err != nil {
			return nil, err
		}
		var seq normalizers
		for _, part := range parts {
			n, err := buildNormalizer(part)
			if err != nil {
				return nil, err
			}
			seq = append(seq, n)
		}
		return seq, nil
	}
	return nil, c.Unsupported("is not supported")
}

type normalizers []Normalizer

func (seq normalizers) Normalize(s string, head *bool) (string, error) {
	for _, n := range seq {
		var err error
		if s, err = n.Normalize(s, head); err != nil {
			return "", err
		}
	}
	return s, nil
}

// prepend puts a string before every non-empty text.
type prepend string

func (p prepend) Normalize(s string, _ *bool) (string, error) {
	if s == "" {
		return s, nil
	}
	return string(p) + s, nil
}

// replace replaces every match by content.
type replace struct {
	p       pattern.Pattern
	content string
}

func (r replace) Normalize(s string, head *bool) (string, error) {
	out, first, err := ReplaceAll(r.p, s, r.content, MaxBytes(len(s)))
	if first > 0 {
		_, n := utf8.DecodeRuneInString(s)
		if r.content == "" || first > n {
			*head = false
		}
	}
	return out, err
}

// ReplaceAll replaces every match by content. first is the length of a match at the start.
func ReplaceAll(p pattern.Pattern, s, content string, limit int) (out string, first int, err error) {
	if l, ok := p.(pattern.Literal); ok {
		if strings.HasPrefix(s, string(l)) {
			first = len(l)
		}
		if n := strings.Count(s, string(l)); n == 0 {
			return s, 0, nil
		} else if n > limit/max(len(content), 1) {
			return "", 0, errNormalized(len(s))
		}
		return strings.ReplaceAll(s, string(l), content), first, nil
	}
	var b strings.Builder
	last := 0
	err = p.Matches(s, func(start, end int) error {
		if start == 0 {
			first = end
		}
		b.WriteString(s[last:start])
		b.WriteString(content)
		last = end
		if b.Len() > limit {
			return errNormalized(len(s))
		}
		return nil
	})
	if err != nil || b.Len() == 0 && last == 0 {
		return s, first, err
	}
	b.WriteString(s[last:])
	return b.String(), first, nil
}
