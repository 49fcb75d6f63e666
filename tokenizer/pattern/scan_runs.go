package pattern

import (
	"sync"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/chars"
)

// These parts look at a whole run of characters and may match a small piece of it, or nothing. A search remembers the
// run, so that it is scanned once, and not again at each of its characters.

// search is one pass of a scanner through a text. Its positions only increase.
type search struct {
	t      *chars.Table
	s      string
	spaces spaceRun
	digits [len(digitClasses)]digitRun
	read   int // bytes that were read again, or further than the match
}

// searches keeps searches for reuse: one pass over a text may start others, one per piece.
var searches = sync.Pool{New: func() any { return &search{t: chars.Characters()} }}

// newSearch returns a search of s. Give it back with done.
func newSearch(s string) *search {
	x := searches.Get().(*search)
	x.s = s
	return x
}

func (x *search) done() {
	*x = search{t: x.t}
	searches.Put(x)
}

// spaceRun is the run of white space that was looked at last.
type spaceRun struct {
	from, end int
	last      int // start of its last character
	broken    int // the end of its last line break; from: there is none
}

// spacesAt returns the rest of the run of white space at i.
func (x *search) spacesAt(i int) *spaceRun {
	r := &x.spaces
	if i >= r.from && i < r.end {
		return r
	}
	*r = spaceRun{from: i, end: i, last: i, broken: i}
	for r.end < len(x.s) {
		ok, n := x.t.At(x.s, r.end, chars.ClassSpace)
		if !ok {
			break
		}
		r.last = r.end
		r.end += n
		if c := x.s[r.last]; c == '\n' || c == '\r' {
			r.broken = r.end
		}
	}
	return r
}

// spaceToLineBreak matches white space up to and including its last line break.
func spaceToLineBreak(x *search, i int) int {
	if r := x.spacesAt(i); r.broken > i {
		return r.broken
	}
	return -1
}

// spaceBeforeSpace matches white space, without its last character if other text follows.
func spaceBeforeSpace(x *search, i int) int {
	r := x.spacesAt(i)
	end := r.end
	if end < len(x.s) {
		end = r.last
	}
	if end <= i {
		return -1
	}
	return end
}

// someSpaces matches as much white space as it can, from most characters down to least, before white space or the end
// of the text.
func someSpaces(least, most int) scanPart {
	return func(x *search, i int) int {
		r := x.spacesAt(i)
		limit := r.end // of the match
		if r.end < len(x.s) {
			limit = r.last
		}
		if limit-i < least {
			return -1
		}
		n, end := 0, i
		for ; n < most && end < limit; n++ {
			_, width := utf8.DecodeRuneInString(x.s[end:])
			end += width
		}
		if n < least {
			x.read += end - i
			return -1
		}
		return end
	}
}

// digitClass is a class of digits as patterns write it.
type digitClass struct {
	text  string
	set   chars.Class
	ascii bool
	word  bool // all are word characters, so \b is only at the ends of a run
}

var digitClasses = [...]digitClass{
	{`\p{N}`, chars.ClassNumber, false, false},
	{`\d`, 1 << chars.CatNd, false, true},
	{`\p{Nd}`, 1 << chars.CatNd, false, true},
	{`[0-9]`, 1 << chars.CatNd, true, true},
}

func (d *digitClass) at(x *search, i int) (ok bool, width int) {
	if c := x.s[i]; c < utf8.RuneSelf {
		return c >= '0' && c <= '9', 1
	}
	if d.ascii {
		return false, 1
	}
	return x.t.At(x.s, i, d.set)
}

// digitRun is the rest of the run of digits that was looked at last.
type digitRun struct {
	at, end int
	left    int  // number of characters between them
	word    bool // a word goes on after it
}

// digitsAt returns the rest of the run of digits at i.
func (x *search) digitsAt(class, i int) *digitRun {
	r, d := &x.digits[class], &digitClasses[class]
	if i < r.at || i >= r.end {
		*r = digitRun{at: i, end: i}
		for r.end < len(x.s) {
			ok, n := d.at(x, r.end)
			if !ok {
				c, _ := utf8.DecodeRuneInString(x.s[r.end:])
				r.word = wordCharacter(x.t, c)
				break
			}
			r.end += n
			r.left++
		}
	}
	for r.at < i {
		_, n := utf8.DecodeRuneInString(x.s[r.at:])
		r.at += n
		r.left--
	}
	return r
}

// wordCharacter is the engine's \w outside of brackets, see onigWord.
func wordCharacter(t *chars.Table, c rune) bool {
	return t.Word(c) && c != 0x200c && c != 0x200d || c == 0xb2 || c == 0xb3 || c == 0xb9 || c >= 0xbc && c <= 0xbe
}

// digitGroup matches the first digits of a run so that whole groups of size follow. whole: the run must end a word.
func digitGroup(class, size int, whole bool) scanPart {
	return func(x *search, i int) int {
		r := x.digitsAt(class, i)
		if r.left == 0 || whole && r.word {
			return -1
		}
		end := i
		for range (r.left-1)%size + 1 {
			_, n := utf8.DecodeRuneInString(x.s[end:])
			end += n
		}
		return end
	}
}

// digitBorders matches nothing, before each whole group of digits that ends a run.
type digitBorders struct{ class, size int }

// Matches implements [Pattern].
func (p digitBorders) Matches(m *work.Meter, s string, found func(start, end int) error) error {
	x := newSearch(s)
	defer x.done()
	for i := 0; i < len(s); {
		if err := m.Spend(4); err != nil {
			return err
		}
		r := x.digitsAt(p.class, i)
		if r.left > 0 && r.left%p.size == 0 {
			if err := found(i, i); err != nil {
				return err
			}
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		i += n
	}
	return nil
}
