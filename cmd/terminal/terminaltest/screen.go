// Package terminaltest emulates a terminal for tests. A control sequence that this program does not use fails the test.
package terminaltest

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/width"
)

// Screen is an emulated terminal. A wide character takes two cells, the second of which is 0.
type Screen struct {
	t             testing.TB
	columns, rows int
	lines         [][]rune // including lines that scrolled out of view
	row, column   int
	raw           bool // a line feed keeps the column
}

// New returns an empty terminal in which a line feed also returns the carriage, as in cooked mode.
func New(t testing.TB, columns, rows int) *Screen {
	return &Screen{t: t, columns: columns, rows: rows, lines: [][]rune{nil}}
}

// NewRaw returns an empty terminal in raw mode.
func NewRaw(t testing.TB, columns, rows int) *Screen {
	s := New(t, columns, rows)
	s.raw = true
	return s
}

// Size returns the size of the terminal.
func (v *Screen) Size() (columns, rows int) { return v.columns, v.rows }

// Write displays text.
func (v *Screen) Write(p []byte) (int, error) {
	text := string(p)
	for len(text) > 0 {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			end := strings.IndexFunc(rest, func(r rune) bool { return r >= '@' && r <= '~' })
			if end < 0 {
				v.t.Errorf("a sequence without an end: %q", text)
				return len(p), nil
			}
			v.control(rest[:end], rest[end])
			text = rest[end+1:]
			continue
		}
		r := []rune(text)[0]
		v.put(r)
		text = text[len(string(r)):]
	}
	return len(p), nil
}

func (v *Screen) control(arguments string, final byte) {
	n := 0
	fmt.Sscan(arguments, &n)
	top := max(0, len(v.lines)-v.rows)
	switch final {
	case 'A':
		v.row = max(v.row-n, top) // stop at the top of the view
	case 'C':
		v.column = min(v.column+n, v.columns-1)
	case 'D':
		v.column = max(min(v.column, v.columns-1)-n, 0)
	case 'H':
		v.row, v.column = top, 0
	case 'K':
		v.lines[v.row] = v.lines[v.row][:min(v.column, len(v.lines[v.row]))]
	case 'J':
		if n == 2 {
			v.lines = append(v.lines[:top], make([][]rune, v.row-top+1)...)
			return
		}
		v.control("0", 'K')
		for i := v.row + 1; i < len(v.lines); i++ {
			v.lines[i] = nil
		}
	case 'm': // styles take no cells
	case 'h', 'l':
		if arguments != "?2004" {
			v.t.Errorf("an unknown mode: %q", arguments)
		}
	default:
		v.t.Errorf("an unknown sequence ends with %q", final)
	}
}

func (v *Screen) put(r rune) {
	switch {
	case r == '\r':
		v.column = 0
		return
	case r == '\n':
		v.down(!v.raw)
		return
	case r < ' ' || r == 127:
		v.t.Errorf("a control character %q", r)
		return
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf): // combining marks get no cell
		return
	}
	cells := 1
	if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
		cells = 2
	}
	if v.column+cells > v.columns {
		v.down(true)
	}
	line := v.lines[v.row]
	for len(line) < v.column+cells {
		line = append(line, ' ')
	}
	line[v.column] = r
	if cells == 2 {
		line[v.column+1] = 0
	}
	v.lines[v.row] = line
	v.column += cells
}

func (v *Screen) down(first bool) {
	v.row++
	if first {
		v.column = 0
	}
	if v.row == len(v.lines) {
		v.lines = append(v.lines, nil)
	}
}

// Text returns all lines, including those that scrolled out of view, without trailing spaces and empty lines.
func (v *Screen) Text() string {
	var list []string
	for _, l := range v.lines {
		list = append(list, strings.TrimRight(strings.ReplaceAll(string(l), "\x00", ""), " "))
	}
	return strings.TrimRight(strings.Join(list, "\n"), "\n") + "\n"
}

// Cursor returns the position of the cursor, counted from the very first line.
func (v *Screen) Cursor() (row, column int) { return v.row, v.column }
