package pretokenize

import (
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
)

func isSpace(c rune) bool       { return chars.Characters().In(c, chars.ClassSpace) }
func isPunctuation(c rune) bool { return chars.Properties().Is(c, chars.PropPunctuation) }

// wordsAndSymbols is \w+|[^\w\s]+, the pattern of Whitespace.
type wordsAndSymbols struct{}

func (wordsAndSymbols) Matches(_ *work.Meter, s string, found func(start, end int) error) error {
	t, p := chars.Characters(), chars.Properties()
	kind := func(c rune) int {
		switch {
		case p.Is(c, chars.PropWord):
			return 1
		case t.In(c, chars.ClassSpace):
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

func newFixedLength(c jsonfile.Component) (fixedLength, error) {
	n, err := c.Count("length", 5, 1<<30)
	if err == nil && n == 0 {
		err = c.Invalid("has the length 0")
	}
	return fixedLength(n), err
}

func (n fixedLength) Pieces(_ *work.Meter, s string, first bool, emit Emit) error {
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

// Metaspace replaces spaces by a visible mark, prepends one, and splits before each (pre_tokenizers/metaspace.rs of the
// reference).
type Metaspace struct {
	Mark    string // one character
	Prepend prependScheme
	split   bool
}

type prependScheme int

const (
	prependAlways prependScheme = iota
	prependFirst                // only at the beginning of the text
	PrependNever
)

var prependSchemes = map[string]prependScheme{"always": prependAlways, "first": prependFirst, "never": PrependNever}

// NewMetaspace parses the options that the pre-tokenizer and the decoder share.
func NewMetaspace(c jsonfile.Component) (m Metaspace, err error) {
	if m.Mark, err = c.Char("replacement"); err != nil {
		return m, err
	}
	m.split = true
	if c.Get("split") != nil {
		if m.split, err = c.Flag("split"); err != nil {
			return m, err
		}
	}
	if c.Get("prepend_scheme") != nil {
		name, err := c.Str("prepend_scheme")
		if err != nil {
			return m, err
		}
		var ok bool
		if m.Prepend, ok = prependSchemes[name]; !ok {
			return m, c.Unsupported("with prepend_scheme %q is not supported", name)
		}
	}
	if c.Get("add_prefix_space") != nil { // the older form of prepend_scheme
		add, err := c.Flag("add_prefix_space")
		if err != nil {
			return m, err
		}
		if !add && m.Prepend != PrependNever {
			return m, c.Invalid("has add_prefix_space false and a prepend_scheme that is not \"never\"")
		}
	}
	return m, nil
}

func (m Metaspace) Pieces(_ *work.Meter, s string, first bool, emit Emit) error {
	if m.Mark != " " {
		s = strings.ReplaceAll(s, " ", m.Mark)
	}
	if (m.Prepend == prependAlways || m.Prepend == prependFirst && first) && !strings.HasPrefix(s, m.Mark) {
		s = m.Mark + s
	}
	if !m.split {
		return emit(s, first)
	}
	start := 0
	for start < len(s) {
		// The piece ends before the next mark; the mark at its own start does not count.
		_, n := utf8.DecodeRuneInString(s[start:])
		end := strings.Index(s[start+n:], m.Mark)
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
