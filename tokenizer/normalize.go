package tokenizer

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// normalizer changes text before it is split; nil is none.
type normalizer interface {
	normalize(s string) (string, error)
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

func (seq normalizers) normalize(s string) (string, error) {
	for _, n := range seq {
		var err error
		if s, err = n.normalize(s); err != nil {
			return "", err
		}
	}
	return s, nil
}

// prepend goes before every text but the empty one.
type prepend string

func (p prepend) normalize(s string) (string, error) {
	if s == "" {
		return s, nil
	}
	return string(p) + s, nil
}

// replace writes content for every match.
type replace struct {
	p       pattern
	content string
}

func (r replace) normalize(s string) (string, error) {
	if l, ok := r.p.(literal); ok {
		return strings.ReplaceAll(s, string(l), r.content), nil
	}
	var b strings.Builder
	last := 0
	err := r.p.matches(s, func(start, end int) error {
		b.WriteString(s[last:start])
		b.WriteString(r.content)
		last = end
		return nil
	})
	if err != nil || b.Len() == 0 && last == 0 {
		return s, err
	}
	b.WriteString(s[last:])
	return b.String(), nil
}
