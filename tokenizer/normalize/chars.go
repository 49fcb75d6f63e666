package normalize

import (
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
	"golang.org/x/text/unicode/norm"
)

// lower is Lowercase.
type lower struct{}

func (lower) Normalize(_ *Pass, s string) (string, error) { return chars.Lowercase(s), nil }

// byteLetters is ByteLevel: it maps each byte to its character of the byte-level alphabet.
type byteLetters struct{}

func (byteLetters) Normalize(_ *Pass, s string) (string, error) { return chars.ToByteLevel(s), nil }

// dropping removes the characters for which it returns true.
type dropping func(c rune) bool

func (drops dropping) Normalize(p *Pass, s string) (string, error) {
	var b strings.Builder
	last := 0
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		if drops(c) {
			if i == 0 {
				p.Head = false
			}
			b.WriteString(s[last:i])
			last = i + n
		}
		i += n
	}
	if last == 0 {
		return s, nil
	}
	b.WriteString(s[last:])
	return b.String(), nil
}

// mapping maps each character to another.
type mapping func(c rune) rune

func (f mapping) Normalize(_ *Pass, s string) (string, error) { return strings.Map(f, s), nil }

// nmtDrops and nmtSpace are the two steps of Nmt (normalizers/unicode.rs of the reference).
func nmtDrops(c rune) bool {
	return c >= 1 && c <= 8 || c == 0xb || c >= 0xe && c <= 0x1f || c == 0x7f || c == 0x8f || c == 0x9f
}

func nmtSpace(c rune) rune {
	switch {
	case c == '\t', c == '\n', c == '\f', c == '\r', c == 0x1680, c >= 0x200b && c <= 0x200f,
		c == 0x2028, c == 0x2029, c == 0x2581, c == 0xfeff, c == 0xfffd:
		return ' '
	}
	return c
}

// strip is Strip: it removes white space from the ends.
type strip struct{ left, right bool }

func newStrip(c jsonfile.Component) (n strip, err error) {
	if n.left, err = c.Flag("strip_left"); err == nil {
		n.right, err = c.Flag("strip_right")
	}
	return n, err
}

func (n strip) Normalize(p *Pass, s string) (string, error) {
	if n.left {
		at := chars.Characters().Skip(s, 0, chars.ClassSpace)
		if at > 0 {
			p.Head = false
		}
		s = s[at:]
	}
	if n.right {
		s = s[:chars.SpaceStart(s, len(s), 0)]
	}
	return s, nil
}

// newBertNormalizer returns the sequence of the enabled steps.
func newBertNormalizer(c jsonfile.Component) (Normalizer, error) {
	clean, err := c.Flag("clean_text")
	if err != nil {
		return nil, err
	}
	chinese, err := c.Flag("handle_chinese_chars")
	if err != nil {
		return nil, err
	}
	lowers, err := c.Flag("lowercase")
	if err != nil {
		return nil, err
	}
	accents := lowers // the meaning of null
	if c.Get("strip_accents") != nil {
		if accents, err = c.Flag("strip_accents"); err != nil {
			return nil, err
		}
	}
	var seq normalizers
	if clean {
		seq = append(seq, dropping(bertDrops), mapping(bertSpace))
	}
	if chinese {
		seq = append(seq, spacedChinese{})
	}
	if accents {
		seq = append(seq, unicodeForm{norm.NFD}, dropping(func(c rune) bool {
			return chars.Properties().Is(c,
				chars.PropBertMark)
		}))
	}
	if lowers {
		seq = append(seq, lower{})
	}
	return seq, nil
}

func bertDrops(c rune) bool { return c == 0xfffd || chars.Properties().Is(c, chars.PropOther) }

func bertSpace(c rune) rune {
	if chars.Characters().In(c, chars.ClassSpace) {
		return ' '
	}
	return c
}

// spacedChinese puts a space before and after each Chinese character.
type spacedChinese struct{}

func (spacedChinese) Normalize(_ *Pass, s string) (string, error) {
	var b strings.Builder
	for i, c := range s {
		if isChinese(c) {
			if b.Len() == 0 {
				b.Grow(len(s) + len(s)/2)
				b.WriteString(s[:i])
			}
			b.WriteByte(' ')
			b.WriteRune(c)
			b.WriteByte(' ')
		} else if b.Len() > 0 {
			b.WriteRune(c)
		}
	}
	if b.Len() == 0 {
		return s, nil
	}
	return b.String(), nil
}

// isChinese covers the blocks that normalizers/bert.rs of the reference lists. One of them differs from Unicode's.
func isChinese(c rune) bool {
	return c >= 0x4e00 && c <= 0x9fff || c >= 0x3400 && c <= 0x4dbf || c >= 0x20000 && c <= 0x2a6df ||
		c >= 0x2a700 && c <= 0x2b81f || c >= 0x2b920 && c <= 0x2ceaf || c >= 0xf900 && c <= 0xfaff || c >= 0x2f800 &&
		c <= 0x2fa1f
}
