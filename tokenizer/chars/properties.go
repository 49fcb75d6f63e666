package chars

import (
	_ "embed"
	"encoding/binary"
	"strings"
	"sync"
	"unicode/utf8"
)

// unicodeMoreRuns are of several versions of Unicode, as the reference's normalizers and pre-tokenizers use them: 8 for
// BertNormalizer and punctuation, 9 for StripAccents, 16 for words. testdata/gen/tokenizers/unicode.py extracts both
// tables from the reference.
//
//go:embed unicode_more.bin
var unicodeMoreRuns []byte

//go:embed lowercase.bin
var lowercaseRuns []byte

// Properties, in the order of the generator.
const (
	PropOther       = 1 << iota // removed by BertNormalizer's clean_text
	PropBertMark                // removed by BertNormalizer's strip_accents
	PropPunctuation             // Punctuation, BertPreTokenizer
	PropMark                    // removed by StripAccents
	PropWord                    // \w of Rust's regex crate
)

// Grapheme break classes, in the top three bits.
const (
	breakPlain         = iota // no other class
	breakJoins                // joins the character before it
	breakJoinsConjunct        // likewise, and may be part of a conjunct
	breakLinker               // likewise, and links a conjunct
	breakPrepend              // joins the character after it
	breakControl              // joins nothing
	breakPictograph
	breakConsonant
)

type propertyTable struct{ pages }

// Properties is the table, unpacked on first use.
var Properties = sync.OnceValue(func() *propertyTable { return newPropertyTable(unicodeMoreRuns) })

// newPropertyTable unpacks runs of length minus one and value.
func newPropertyTable(data []byte) *propertyTable {
	t := &propertyTable{}
	t.unpack(data, func(data []byte) (value uint8, length uint64, n int) {
		run, n := binary.Uvarint(data)
		return data[n], run + 1, n + 1
	})
	return t
}

// At returns the value of a character.
func (t *propertyTable) At(c rune) uint8 { return t.at(c) }

func (t *propertyTable) Is(c rune, property uint8) bool {
	return t.At(c)&property != 0
}

func (t *propertyTable) breakClass(c rune) uint8 { return t.At(c) >> 5 }

// lowercaseOf maps characters to their lower case if it differs, except U+0130, whose lower case has two characters.
var lowercaseOf = sync.OnceValue(func() map[rune]rune {
	lower := map[rune]rune{}
	c := rune(0)
	for data := lowercaseRuns; len(data) > 0; {
		step, n := binary.Uvarint(data)
		delta, m := binary.Varint(data[n:])
		data = data[n+m:]
		c += rune(step)
		lower[c] = c + rune(delta)
	}
	return lower
})

// Lowercase lowers each character separately, as Rust's char::to_lowercase does: a final sigma gets no special
// treatment.
func Lowercase(s string) string {
	i := 0
	for i < len(s) && s[i] < utf8.RuneSelf && (s[i] < 'A' || s[i] > 'Z') {
		i++
	}
	if i == len(s) {
		return s
	}
	lower := lowercaseOf()
	var b strings.Builder
	b.Grow(len(s) + 8)
	b.WriteString(s[:i])
	for _, c := range s[i:] {
		switch {
		case c < utf8.RuneSelf:
			if c >= 'A' && c <= 'Z' {
				c += 'a' - 'A'
			}
			b.WriteByte(byte(c))
		case c == 0x130:
			b.WriteString("i\u0307")
		default:
			if to, ok := lower[c]; ok {
				c = to
			}
			b.WriteRune(c)
		}
	}
	return b.String()
}
