package chars

import (
	_ "embed"
	"encoding/binary"
	"sync"
	"unicode/utf8"
)

// unicodeRuns are the character classes of the reference's regular expression engine (Unicode 16). They must not change
// with the Go version, so they come from a table that testdata/gen/tokenizers/characters.py extracts from the
// reference.
//
//go:embed unicode.bin
var unicodeRuns []byte

// General categories in the order of the generator, and one more for the control characters that \s matches.
const (
	CatLu = iota
	CatLl
	CatLt
	CatLm
	CatLo
	catMn
	catMc
	catMe
	CatNd
	CatNl
	catNo
	CatPc
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

// Class is a set of categories.
type Class uint32

const (
	ClassLetter Class = 1<<CatLu | 1<<CatLl | 1<<CatLt | 1<<CatLm | 1<<CatLo
	ClassMark   Class = 1<<catMn | 1<<catMc | 1<<catMe
	ClassNumber Class = 1<<CatNd | 1<<CatNl | 1<<catNo
	ClassPunct  Class = 1<<CatPc | 1<<catPd | 1<<catPs | 1<<catPe | 1<<catPi | 1<<catPf | 1<<catPo
	ClassSymbol Class = 1<<catSm | 1<<catSc | 1<<catSk | 1<<catSo
	ClassSpace  Class = 1<<catZs | 1<<catZl | 1<<catZp | 1<<catSpaceControl // \s, the property White_Space
	classOther  Class = 1<<catCc | 1<<catCf | 1<<catCs | 1<<catCo | 1<<catCn | 1<<catSpaceControl
	ClassAll    Class = 1<<catCount - 1
)

// ClassNames maps the values of \p{...} to their categories.
var ClassNames = map[string]Class{
	"L": ClassLetter, "M": ClassMark, "N": ClassNumber, "P": ClassPunct, "S": ClassSymbol, "C": classOther,
	"Z":  1<<catZs | 1<<catZl | 1<<catZp,
	"Lu": 1 << CatLu, "Ll": 1 << CatLl, "Lt": 1 << CatLt, "Lm": 1 << CatLm, "Lo": 1 << CatLo,
	"Mn": 1 << catMn, "Mc": 1 << catMc, "Me": 1 << catMe, "Nd": 1 << CatNd, "Nl": 1 << CatNl, "No": 1 << catNo,
	"Pc": 1 << CatPc, "Pd": 1 << catPd, "Ps": 1 << catPs, "Pe": 1 << catPe, "Pi": 1 << catPi, "Pf": 1 << catPf,
	"Po": 1 << catPo, "Sm": 1 << catSm, "Sc": 1 << catSc, "Sk": 1 << catSk, "So": 1 << catSo,
	"Zs": 1 << catZs, "Zl": 1 << catZl, "Zp": 1 << catZp,
	"Cc": 1<<catCc | 1<<catSpaceControl, "Cf": 1 << catCf, "Co": 1 << catCo, "Cn": 1 << catCn,
	"Letter": ClassLetter, "Mark": ClassMark, "Number": ClassNumber, "Punctuation": ClassPunct, "Symbol": ClassSymbol,
}

// activeBit marks characters to which the reference's normalizers (Unicode 9) give a decomposition or a combining
// class.
const activeBit = 1 << 5

// Table has a category and activeBit for each character.
type Table struct{ pages }

// Characters is the table, about 80 KiB, unpacked on first use.
var Characters = sync.OnceValue(func() *Table {
	t := &Table{}
	t.unpack(unicodeRuns, func(data []byte) (value uint8, length uint64, n int) {
		v, n := binary.Uvarint(data)
		return uint8(v & 0x3f), v>>6 + 1, n
	})
	return t
})

// In reports whether c, a valid code point, belongs to the class.
func (t *Table) In(c rune, set Class) bool {
	return set>>(t.at(c)&0x1f)&1 != 0
}

func (t *Table) Active(c rune) bool {
	return t.at(c)&activeBit != 0
}

// At reports whether the character at s[i:] belongs to the class, and returns its width.
func (t *Table) At(s string, i int, set Class) (ok bool, width int) {
	if c := s[i]; c < utf8.RuneSelf {
		return set>>(t.list[0][c]&0x1f)&1 != 0, 1
	}
	c, n := utf8.DecodeRuneInString(s[i:])
	return t.In(c, set), n
}

// Skip returns the end of the longest run of the class that starts at i.
func (t *Table) Skip(s string, i int, set Class) int {
	for i < len(s) {
		ok, n := t.At(s, i, set)
		if !ok {
			return i
		}
		i += n
	}
	return i
}

// Word is \w of Rust's regex crate (Unicode 16). It determines word boundaries for added tokens with single_word.
func (t *Table) Word(c rune) bool {
	return t.In(c, ClassLetter|ClassMark|1<<CatNd|1<<CatNl|1<<CatPc) || c == 0x200c || c == 0x200d || circledLetter(c)
}

// circledLetter reports whether c is a symbol with the property Other_Alphabetic.
func circledLetter(c rune) bool {
	return c >= 0x24b6 && c <= 0x24e9 || c >= 0x1f130 && c <= 0x1f149 || c >= 0x1f150 && c <= 0x1f169 ||
		c >= 0x1f170 && c <= 0x1f189
}

// Numeric is Rust's char::is_numeric (Unicode 17).
func (t *Table) Numeric(c rune) bool {
	return t.In(c, ClassNumber) || c >= 0x11de0 && c <= 0x11de9 || c >= 0x16ff4 && c <= 0x16ff6
}

// SpaceStart returns the start of the white space before end, but at least limit.
func SpaceStart(s string, end, limit int) int {
	t := Characters()
	for end > limit {
		c, n := utf8.DecodeLastRuneInString(s[:end])
		if !t.In(c, ClassSpace) {
			break
		}
		end -= n
	}
	return max(end, limit)
}
