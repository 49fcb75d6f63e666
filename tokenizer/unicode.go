package tokenizer

import (
	_ "embed"
	"encoding/binary"
	"sync"
	"unicode/utf8"
)

// The character classes are those of the reference's regular expression engine (Unicode 16). They must not change with
// the Go version, so they come from a table that testdata/gen/tokenizer_fixtures.py extracts from the reference.
//
//go:embed unicode.bin
var unicodeRuns []byte

// General categories in the order of the generator, and one more for the control characters that \s matches.
const (
	catLu = iota
	catLl
	catLt
	catLm
	catLo
	catMn
	catMc
	catMe
	catNd
	catNl
	catNo
	catPc
	catPd
	catPs
	catPe
	catPi
	catPf
	catPo
	catSm
	catSc
	catSk
	catSo
	catZs
	catZl
	catZp
	catCc
	catCf
	catCs
	catCo
	catCn
	catSpaceControl
	catCount
)

// class is a set of categories.
type class uint32

const (
	classLetter class = 1<<catLu | 1<<catLl | 1<<catLt | 1<<catLm | 1<<catLo
	classMark   class = 1<<catMn | 1<<catMc | 1<<catMe
	classNumber class = 1<<catNd | 1<<catNl | 1<<catNo
	classPunct  class = 1<<catPc | 1<<catPd | 1<<catPs | 1<<catPe | 1<<catPi | 1<<catPf | 1<<catPo
	classSymbol class = 1<<catSm | 1<<catSc | 1<<catSk | 1<<catSo
	classSpace  class = 1<<catZs | 1<<catZl | 1<<catZp | 1<<catSpaceControl // \s, the property White_Space
	classOther  class = 1<<catCc | 1<<catCf | 1<<catCs | 1<<catCo | 1<<catCn | 1<<catSpaceControl
	classAll    class = 1<<catCount - 1
)

// classNames maps the values of \p{...} to their categories.
var classNames = map[string]class{
	"L": classLetter, "M": classMark, "N": classNumber, "P": classPunct, "S": classSymbol, "C": classOther,
	"Z":  1<<catZs | 1<<catZl | 1<<catZp,
	"Lu": 1 << catLu, "Ll": 1 << catLl, "Lt": 1 << catLt, "Lm": 1 << catLm, "Lo": 1 << catLo,
	"Mn": 1 << catMn, "Mc": 1 << catMc, "Me": 1 << catMe, "Nd": 1 << catNd, "Nl": 1 << catNl, "No": 1 << catNo,
	"Pc": 1 << catPc, "Pd": 1 << catPd, "Ps": 1 << catPs, "Pe": 1 << catPe, "Pi": 1 << catPi, "Pf": 1 << catPf,
	"Po": 1 << catPo, "Sm": 1 << catSm, "Sc": 1 << catSc, "Sk": 1 << catSk, "So": 1 << catSo,
	"Zs": 1 << catZs, "Zl": 1 << catZl, "Zp": 1 << catZp,
	"Cc": 1<<catCc | 1<<catSpaceControl, "Cf": 1 << catCf, "Co": 1 << catCo, "Cn": 1 << catCn,
	"Letter": classLetter, "Mark": classMark, "Number": classNumber, "Punctuation": classPunct, "Symbol": classSymbol,
}

// activeBit marks characters to which the reference's normalizers (Unicode 9) give a decomposition or a combining
// class.
const activeBit = 1 << 5

type unicodeTable struct {
	index [0x110000 >> 8]uint16
	pages [][256]uint8 // category | activeBit
}

// characters is the table, about 80 KiB, unpacked on first use.
var characters = sync.OnceValue(func() *unicodeTable {
	t := &unicodeTable{}
	seen := map[[256]uint8]uint16{}
	var page [256]uint8
	c := 0
	for data := unicodeRuns; len(data) > 0; {
		v, n := binary.Uvarint(data)
		data = data[n:]
		for run := v>>6 + 1; run > 0; run-- {
			page[c&0xff] = uint8(v & 0x3f)
			if c++; c&0xff == 0 {
				at, ok := seen[page]
				if !ok {
					at = uint16(len(t.pages))
					seen[page] = at
					t.pages = append(t.pages, page)
				}
				t.index[c>>8-1] = at
			}
		}
	}
	return t
})

// in reports whether c, a valid code point, belongs to the class.
func (t *unicodeTable) in(c rune, set class) bool {
	return set>>(t.pages[t.index[c>>8]][c&0xff]&0x1f)&1 != 0
}

func (t *unicodeTable) active(c rune) bool {
	return t.pages[t.index[c>>8]][c&0xff]&activeBit != 0
}

// at reports whether the character at s[i:] belongs to the class, and returns its width.
func (t *unicodeTable) at(s string, i int, set class) (ok bool, width int) {
	if c := s[i]; c < utf8.RuneSelf {
		return set>>(t.pages[0][c]&0x1f)&1 != 0, 1
	}
	c, n := utf8.DecodeRuneInString(s[i:])
	return t.in(c, set), n
}

// skip returns the end of the longest run of the class that starts at i.
func (t *unicodeTable) skip(s string, i int, set class) int {
	for i < len(s) {
		ok, n := t.at(s, i, set)
		if !ok {
			return i
		}
		i += n
	}
	return i
}

// word is \w of Rust's regex crate (Unicode 16). It determines word boundaries for added tokens with single_word.
func (t *unicodeTable) word(c rune) bool {
	return t.in(c, classLetter|classMark|1<<catNd|1<<catNl|1<<catPc) || c == 0x200c || c == 0x200d || circledLetter(c)
}

// circledLetter reports whether c is a symbol with the property Other_Alphabetic.
func circledLetter(c rune) bool {
	return c >= 0x24b6 && c <= 0x24e9 || c >= 0x1f130 && c <= 0x1f149 || c >= 0x1f150 && c <= 0x1f169 ||
		c >= 0x1f170 && c <= 0x1f189
}

// numeric is Rust's char::is_numeric (Unicode 17).
func (t *unicodeTable) numeric(c rune) bool {
	return t.in(c, classNumber) || c >= 0x11de0 && c <= 0x11de9 || c >= 0x16ff4 && c <= 0x16ff6
}
