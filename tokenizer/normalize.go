package tokenizer

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalizer transforms text before it is split; nil is none.
type normalizer interface {
	// normalize clears head if the start of the result does not stem from the start of s. Metaspace asks whether a piece
	// begins the text, and the reference decides that by the original offset of its first byte.
	normalize(s string, head *bool) (string, error)
}

// maxNormalizedBytes bounds the output of a normalizer for n bytes: a file could replace each character by a megabyte.
func maxNormalizedBytes(n int) int { return min(32*n+1<<20, 1<<29) }

func errNormalized(n int) error {
	const format = "tokenizer: the normalizer expands a text of %d bytes to more than %d"
	return failure(ErrInvalid, format, n, maxNormalizedBytes(n))
}

func newNormalizer(n *node) (normalizer, error) {
	c, err := asComponent(n, "normalizer")
	if err != nil {
		return nil, err
	}
	return buildNormalizer(c)
}

func buildNormalizer(c component) (normalizer, error) {
	switch c.name {
	case "NFC":
		return unicodeForm{norm.NFC}, nil
	case "NFD":
		return unicodeForm{norm.NFD}, nil
	case "NFKC":
		return unicodeForm{norm.NFKC}, nil
	case "NFKD":
		return unicodeForm{norm.NFKD}, nil
	case "Prepend":
		text, err := c.str("prepend")
		return prepend(text), err
	case "Replace":
		p, err := newPattern(c)
		if err != nil {
			return nil, err
		}
		if l, ok := p.(literal); ok && l == "" {
			return nil, c.invalid("replaces an empty string")
		}
		content, err := c.str("content")
		return replace{p, content}, err
	case "Lowercase":
		return lower{}, nil
	case "StripAccents":
		return dropping(func(c rune) bool { return properties().is(c, propMark) }), nil
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
		parts, err := c.parts("normalizers")
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
	return nil, c.unsupported("is not supported")
}

type normalizers []normalizer

func (seq normalizers) normalize(s string, head *bool) (string, error) {
	for _, n := range seq {
		var err error
		if s, err = n.normalize(s, head); err != nil {
			return "", err
		}
	}
	return s, nil
}

// prepend puts a string before every non-empty text.
type prepend string

func (p prepend) normalize(s string, _ *bool) (string, error) {
	if s == "" {
		return s, nil
	}
	return string(p) + s, nil
}

// replace replaces every match by content.
type replace struct {
	p       pattern
	content string
}

func (r replace) normalize(s string, head *bool) (string, error) {
	out, first, err := replaceAll(r.p, s, r.content, maxNormalizedBytes(len(s)))
	if first > 0 {
		_, n := utf8.DecodeRuneInString(s)
		if r.content == "" || first > n {
			*head = false
		}
	}
	return out, err
}

// replaceAll replaces every match by content. first is the length of a match at the start.
func replaceAll(p pattern, s, content string, limit int) (out string, first int, err error) {
	if l, ok := p.(literal); ok {
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
	err = p.matches(s, func(start, end int) error {
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
