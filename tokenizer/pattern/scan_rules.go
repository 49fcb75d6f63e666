package pattern

import (
	"regexp"
	"slices"
	"strconv"

	"github.com/ingotml/ingot/tokenizer/chars"
)

// Rules are parts with numbers: the groups of digits, of 1 to 3 so that whole groups of 3 follow, and runs of white
// space of some length.
var (
	digitText = `(\\p\{N\}|\\d|\\p\{Nd\}|\[0-9\])`
	groupRule = regexp.MustCompile(`^` + digitText + `\{1,([2-9])\}\(\?=\((?:\?:)?` + digitText + `\{([2-9])\}\)\*` +
		`(?:(\\b)|\(\?!` + digitText + `\))\)`)
	bordersRule = regexp.MustCompile(`^\(\?=\((?:\?:)?` + digitText + `\{([2-9])\}\)\+\(\?!` + digitText + `\)\)$`)
	spacesRule  = regexp.MustCompile(`^\\s\{([1-9][0-9]{0,3})(?:,([1-9][0-9]{0,3}))?\}\(\?!\\S\)`)
	countRule   = regexp.MustCompile(`^(\\p\{N\}|\\s)\{1(?:,([1-9]))?\}`)
)

// longestSpaces bounds the white space that a part looks at again and again.
const longestSpaces = 1024

// ruled returns the part that a rule finds at the start of an expression, and its length.
func ruled(expr string) (scanPart, int) {
	if m := groupRule.FindStringSubmatch(expr); m != nil {
		class := classOf(m[1])
		ends := m[5] == "" && m[6] == m[1] || m[5] != "" && digitClasses[class].word
		if m[3] == m[1] && m[4] == m[2] && ends {
			return digitGroup(class, count(m[2]), m[5] != ""), len(m[0])
		}
	}
	if m := spacesRule.FindStringSubmatch(expr); m != nil {
		least := count(m[1])
		most := max(least, count(m[2]))
		if most <= longestSpaces && (m[2] == "" || count(m[2]) >= least) {
			return someSpaces(least, most), len(m[0])
		}
	}
	if m := countRule.FindStringSubmatch(expr); m != nil {
		set := chars.ClassSpace
		if m[1] == `\p{N}` {
			set = chars.ClassNumber
		}
		return upTo(max(1, count(m[2])), set), len(m[0])
	}
	return nil, 0
}

// newDigitBorders parses an expression that is nothing but a border between groups of digits.
func newDigitBorders(expr string) (digitBorders, bool) {
	m := bordersRule.FindStringSubmatch(expr)
	if m == nil || m[1] != m[3] {
		return digitBorders{}, false
	}
	return digitBorders{classOf(m[1]), count(m[2])}, true
}

func classOf(text string) int {
	return slices.IndexFunc(digitClasses[:], func(d digitClass) bool { return d.text == text })
}

// count returns a number of a rule; 0 if it is missing.
func count(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}
