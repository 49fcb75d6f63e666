package tokenizer

import (
	"strings"
	"unicode/utf8"
)

func isSpace(c rune) bool       { return characters().in(c, classSpace) }
func isPunctuation(c rune) bool { return properties().is(c, propPunctuation) }

// wordsAndSymbols is \w+|[^\w\s]+, the pattern of Whitespace.
type wordsAndSymbols struct{}

func (wordsAndSymbols) matches(s string, found func(start, end int) error) error {
	t, p := characters(), properties()
	kind := func(c rune) int {
		switch {
		case p.is(c, propWord):
			return 1
		case t.in(c, classSpace):
			return 0
		}
		return 2
	}
	start, last := 0, 0
	for i, c := range s {
		k := kind(c)
		if k != last {
			if last != 0 {
				if err := found(start, i); err != nil {
					return err
				}
			}
			start, last = i, k
		}
	}
	if last != 0 {
		return found(start, len(s))
	}
	return nil
}

// fixedLength splits after every n characters.
type fixedLength int

func newFixedLength(c component) (fixedLength, error) {
	n, err := c.count("length", 5, 1<<30)
	if err == nil && n == 0 {
		err = c.invalid("has the length 0")
	}
	return fixedLength(n), err
}

func (n fixedLength) pieces(s string, first bool, emit emitPiece) error {
	start, count := 0, 0
	for i := range s {
		if count == int(n) {
			if err := emit(s[start:i], first && start == 0); err != nil {
				return err
			}
			start, count = i, 0
		}
		count++
	}
	return emit(s[start:], first && start == 0)
}

// metaspace replaces spaces by a visible mark, prepends one, and splits before each (pre_tokenizers/metaspace.rs of the
// reference).
type metaspace struct {
	mark    string // one character
	prepend prependScheme
	split   bool
}

type prependScheme int

const (
	prependAlways prependScheme = iota
	prependFirst                // only at the beginning of the text
	prependNever
)

var prependSchemes = map[string]prependScheme{"always": prependAlways, "first": prependFirst, "never": prependNever}

// newMetaspace parses the options that the pre-tokenizer and the decoder share.
func newMetaspace(c component) (m metaspace, err error) {
	if m.mark, err = c.char("replacement"); err != nil {
		return m, err
	}
	m.split = true
	if c.get("split") != nil {
		if m.split, err = c.flag("split"); err != nil {
			return m, err
		}
	}
	if c.get("prepend_scheme") != nil {
		name, err := c.str("prepend_scheme")
		if err != nil {
			return m, err
		}
		var ok bool
		if m.prepend, ok = prependSchemes[name]; !ok {
			return m, c.unsupported("with prepend_scheme %q is not supported", name)
		}
	}
	if c.get("add_prefix_space") != nil { // the older form of prepend_scheme
		add, err := c.flag("add_prefix_space")
		if err != nil {
			return m, err
		}
		if !add && m.prepend != prependNever {
			return m, c.invalid("has add_prefix_space false and a prepend_scheme that is not \"never\"")
		}
	}
	return m, nil
}

func (m metaspace) pieces(s string, first bool, emit emitPiece) error {
	if m.mark != " " {
		s = strings.ReplaceAll(s, " ", m.mark)
	}
	if (m.prepend == prependAlways || m.prepend == prependFirst && first) && !strings.HasPrefix(s, m.mark) {
		s = m.mark + s
	}
	if !m.split {
		return emit(s, first)
	}
	start := 0
	for start < len(s) {
		// The piece ends before the next mark; the mark at its own start does not count.
		_, n := utf8.DecodeRuneInString(s[start:])
		end := strings.Index(s[start+n:], m.mark)
		if end < 0 {
			break
		}
		end += start + n
		if err := emit(s[start:end], first && start == 0); err != nil {
			return err
		}
		start = end
	}
	return emit(s[start:], first && start == 0)
}
