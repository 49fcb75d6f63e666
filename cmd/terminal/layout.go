package terminal

import (
	"fmt"
	"strings"
)

// layout is a message as rows of a terminal.
type layout struct {
	rows        []row
	row, column int // of the cursor
}

// row is a row of the terminal. The cursor can stand before each of its characters, and behind the last one.
type row struct {
	text  string
	from  int   // the first character's index in the message
	stops []int // columns of the characters, and the one behind the last
}

// nearest is the character of a row that is nearest to a column.
func (l layout) nearest(n, column int) int {
	r := l.rows[n]
	i := len(r.stops) - 1
	for i > 0 && r.stops[i] > column {
		i--
	}
	return r.from + i
}

// tab is what a tabulator looks like.
const tab = "    "

func (e *Editor) layout(columns int) layout {
	columns = max(columns, 2) // what a wide character needs
	var l layout
	var b strings.Builder
	now := row{}
	column := 0
	prompt := func(p string) {
		b.WriteString(p)
		column = Columns(p)
	}
	end := func(next int) {
		now.text = b.String()
		l.rows = append(l.rows, now)
		b.Reset()
		now, column = row{from: next}, 0
	}
	prompt(e.prompt)
	for i, r := range e.text {
		text, width := string(r), runeColumns(r)
		switch {
		case r == '\t':
			text, width = tab, len(tab)
		case r == '\n':
			width = 0
		case !Plain(r): // the history's file may hold anything
			text = escape(r)
			width = len(text)
		}
		if column+width > columns && len(now.stops) > 0 || column >= columns && width > 0 {
			end(i)
		}
		if i == e.at { // before a line break in a full row it stands on the last character
			l.row, l.column = len(l.rows), min(column, columns-1)
		}
		now.stops = append(now.stops, column)
		if r == '\n' {
			end(i + 1)
			prompt(e.more)
			continue
		}
		b.WriteString(text)
		column += width
	}
	if column >= columns {
		end(len(e.text))
	}
	if e.at == len(e.text) {
		l.row, l.column = len(l.rows), column
	}
	now.stops = append(now.stops, column)
	end(len(e.text))
	return l
}

func (e *Editor) size() (columns, rows int) {
	if e.Size == nil {
		return 80, 24
	}
	return e.Size()
}

const (
	dimOn  = "\x1b[2m"
	dimOff = "\x1b[0m"
)

// draw puts the message in the place of what was drawn of it before, and the cursor where it belongs. A message that is taller than
// the terminal is shown in part.
func (e *Editor) draw() {
	columns, height := e.size()
	l := e.layout(columns)
	first, end := visible(len(l.rows), l.row, height)
	var b strings.Builder
	if e.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", e.drawn)
	}
	b.WriteString("\r\x1b[J")
	for i := first; i < end; i++ {
		if i > first {
			b.WriteString("\r\n")
		}
		b.WriteString(l.rows[i].text)
	}
	if hint := e.Hint; hint != "" && len(e.text) == 0 && l.column+Columns(hint) < columns {
		b.WriteString(dimOn + hint + dimOff)
	}
	if up := end - 1 - l.row; up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteString("\r")
	if l.column > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", l.column)
	}
	e.drawn = l.row - first
	e.write(b.String())
}

// visible are the rows that are shown: all that fit, with the cursor's among them.
func visible(rows, cursor, height int) (first, end int) {
	height = max(1, height)
	if rows <= height {
		return 0, rows
	}
	first = min(max(0, cursor-height/2), rows-height)
	return first, first + height
}

// finish leaves the message as it is and goes below it.
func (e *Editor) finish() {
	at := e.at
	e.at = len(e.text)
	hint := e.Hint
	e.Hint = ""
	e.draw()
	e.Hint, e.at = hint, at
	e.write("\r\n")
	e.drawn = 0
}

// write puts text on the terminal. One that is gone is noticed when it is read from.
func (e *Editor) write(text string) { _, _ = e.Out.Write([]byte(text)) }
