package pdf

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// point is a position on the page, or a direction.
type point struct{ x, y float64 }

func (p point) minus(q point) point { return point{p.x - q.x, p.y - q.y} }
func (p point) dot(q point) float64 { return p.x*q.x + p.y*q.y }

// layout turns runs of glyphs into lines, in the order in which they are painted. Gaps become spaces, and larger ones
// tabs, as between a table's columns.
type layout struct {
	b    strings.Builder
	last run
}

// run is glyphs that a string paints side by side.
type run struct {
	text     string
	from, to point
	along    point   // the direction of the text, of length 1
	size     float64 // of the font on the page
	wide     float64 // the same along the text, where it may be stretched
}

// Parts of the font's size that decide what is between two runs.
const (
	shifted  = 0.7  // a larger step across the text starts a line
	apart    = 1.9  // a larger step leaves a line empty
	spaced   = 0.17 // a larger gap is a space
	tabbed   = 2.0  // a larger gap is a tab
	spread   = 0.2  // a larger distance between all characters stands for spaces
	closed   = 0.1  // a narrower space is none
	backward = 0.5  // a larger step back starts a line
	repeated = 0.15 // the same text so near by is painted for effect
)

// add adds a run.
func (l *layout) add(r run) {
	if !finite(r.from) || !finite(r.to) || !(r.size > 0) {
		return
	}
	if r.text == "" { // a part of what was replaced before
		l.last.to = r.to
		return
	}
	switch last := l.last; {
	case last.text == "":
	case r.text == last.text && near(r.from, last.from, repeated*r.size):
		return
	default:
		l.b.WriteString(between(last, r))
	}
	l.b.WriteString(r.text)
	l.last = r
}

func finite(p point) bool { return !math.IsNaN(p.x+p.y) && !math.IsInf(p.x+p.y, 0) }

func near(a, b point, most float64) bool {
	d := a.minus(b)
	return math.Hypot(d.x, d.y) < most
}

// between returns the white space between two runs.
func between(last, r run) string {
	gap := r.from.minus(last.to)
	size := max(last.size, r.size)
	across := point{-r.along.y, r.along.x}
	along, step := gap.dot(r.along), math.Abs(gap.dot(across))
	turned := last.along.dot(r.along) < 0.9
	left := last.from.minus(r.to).dot(r.along) // the gap of text that runs from right to left
	switch {
	case turned || step > apart*size:
		return "\n\n"
	case step > shifted*size:
		return "\n"
	case along < -backward*size && math.Abs(left) < backward*size:
		along = left
	case along < -backward*size:
		return "\n"
	}
	before, _ := utf8.DecodeLastRuneInString(last.text)
	after, _ := utf8.DecodeRuneInString(r.text)
	switch {
	case along > tabbed*r.wide:
		return "\t"
	case unicode.IsSpace(before) || unicode.IsSpace(after):
		return ""
	case along > spaced*r.wide:
		return " "
	}
	return ""
}

// text returns what was added.
func (l *layout) text() string {
	var out strings.Builder
	empty := 0
	for line := range strings.SplitSeq(l.b.String(), "\n") {
		if line = strings.TrimRight(line, " \t"); line == "" {
			empty++
			continue
		}
		if out.Len() > 0 {
			out.WriteString("\n")
			if empty > 0 {
				out.WriteString("\n")
			}
		}
		out.WriteString(line)
		empty = 0
	}
	return out.String()
}

// tidy removes control characters and separates ligatures.
func tidy(s string) string {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] >= ' ' && s[i] < 127
	}
	if plain {
		return s
	}
	var out strings.Builder
	for _, r := range s {
		switch {
		case r >= '\uFB00' && r <= '\uFB06':
			out.WriteString(norm.NFKC.String(string(r)))
		case r == '\u00AD': // a hyphen that ends a line
			out.WriteByte('-')
		case unicode.IsSpace(r):
			out.WriteByte(' ')
		case unicode.IsControl(r):
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}
