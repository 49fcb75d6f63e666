// Package normalize changes text before it is split and encoded.
//
// Contract: a Normalizer returns what the reference's returns for the same text, within the room of its Pass. It is
// immutable and safe for concurrent use.
package normalize

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/fault"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
	"github.com/ingotml/ingot/tokenizer/pattern"
	"golang.org/x/text/unicode/norm"
)

// Normalizer transforms text before it is split; nil is none.
type Normalizer interface {
	Normalize(p *Pass, s string) (string, error)
}

// Pass is the way of one text, or of its parts one after another, through a normalizer.
type Pass struct {
	*work.Meter
	// Head is cleared if the start of a result does not stem from the start of its text. Metaspace asks whether a piece
	// begins the text, and the reference decides that by the original offset of its first byte.
	Head bool
	Room int // bytes that the results may still have: a file could replace each character by a megabyte

	bytes int // of the text
}

// NewPass begins the pass of a text of n bytes.
func NewPass(m *work.Meter, n int) *Pass {
	return &Pass{Meter: m, Head: true, Room: limits.NormalizedTimes*n + limits.NormalizedMore, bytes: n}
}

func (p *Pass) tooLong() error {
	const format = "tokenizer: the normalizer expands a text of %d bytes to more than %d"
	return fault.Errorf(fault.ErrInvalid, format, p.bytes, limits.NormalizedTimes*p.bytes+limits.NormalizedMore)
}

// Take normalizes a part of the text, which takes its room.
func (p *Pass) Take(n Normalizer, s string) (string, error) {
	s, err := n.Normalize(p, s)
	if err == nil {
		err = p.check(s)
	}
	p.Room -= len(s)
	return s, err
}

// check counts a result.
func (p *Pass) check(s string) error {
	if len(s) > p.Room {
		return p.tooLong()
	}
	return p.Spend(len(s))
}

func New(n *jsonfile.Node) (Normalizer, error) {
	c, err := jsonfile.AsComponent(n, "normalizer")
	if err != nil {
		return nil, err
	}
	seq, err := appendSteps(nil, c)
	if err == nil {
		err = c.CheckSteps(len(seq))
	}
	return seq, err
}

// appendSteps appends the steps of c and flattens sequences.
func appendSteps(seq normalizers, c jsonfile.Component) (normalizers, error) {
	if c.Name != "Sequence" {
		n, err := buildNormalizer(c)
		if steps, ok := n.(normalizers); ok {
			return append(seq, steps...), err
		}
		return append(seq, n), err
	}
	parts, err := c.Parts("normalizers")
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		if seq, err = appendSteps(seq, part); err != nil {
			return nil, err
		}
	}
	return seq, nil
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
	}
	return nil, c.Unsupported("is not supported")
}

type normalizers []Normalizer

func (seq normalizers) Normalize(p *Pass, s string) (string, error) {
	for _, n := range seq {
		var err error
		if s, err = n.Normalize(p, s); err == nil {
			err = p.check(s)
		}
		if err != nil {
			return "", err
		}
	}
	return s, nil
}

// prepend puts a string before every non-empty text.
type prepend string

func (p prepend) Normalize(_ *Pass, s string) (string, error) {
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

func (r replace) Normalize(p *Pass, s string) (string, error) {
	out, first, err := ReplaceAll(p.Meter, r.p, s, r.content, p.Room)
	if errors.Is(err, errRoom) {
		err = p.tooLong()
	}
	if first > 0 {
		_, n := utf8.DecodeRuneInString(s)
		if r.content == "" || first > n {
			p.Head = false
		}
	}
	return out, err
}

// errRoom reports that a result has more bytes than it may have.
var errRoom = errors.New("too long")

// ReplaceAll replaces every match by content, with a result of at most limit bytes. first is the length of a match at
// the start.
func ReplaceAll(m *work.Meter, p pattern.Pattern, s, content string, limit int) (out string, first int, err error) {
	if l, ok := p.(pattern.Literal); ok {
		if strings.HasPrefix(s, string(l)) {
			first = len(l)
		}
		if n := strings.Count(s, string(l)); n == 0 {
			return s, 0, nil
		} else if n > limit/max(len(content), 1) {
			return "", 0, errRoom
		}
		return strings.ReplaceAll(s, string(l), content), first, nil
	}
	var b strings.Builder
	last := 0
	err = p.Matches(m, s, func(start, end int) error {
		if start == 0 {
			first = end
		}
		b.WriteString(s[last:start])
		b.WriteString(content)
		last = end
		if b.Len() > limit {
			return errRoom
		}
		return nil
	})
	if err != nil || b.Len() == 0 && last == 0 {
		return s, first, err
	}
	b.WriteString(s[last:])
	return b.String(), first, nil
}
