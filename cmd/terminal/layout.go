package terminal

import (
	"fmt"
	"strings"
)

// layout is a message as rows of a terminal.
type layout struct {
	rows        []row
	row, column int // position of the cursor
}

// row is a row of the terminal. The cursor can be before each character and after the last one.
type row struct {
	text  string
	from  int   // index of the first character in the message
	stops []int // column of each cursor position
}

// nearest returns the index of the character nearest to a column of row n.
func (l layout) nearest(n, column int) int {
	r := l.rows[n]
	i := len(r.stops) - 1
	for i > 0 && r.stops[i] > column {
		i--
	}
	return r.from + i
}

// tab is displayed for a tab.
const tab = "    "

func (e *Editor) layout(columns int) layout {
	columns = max(columns, 2) // a wide character needs 2
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
		case !Plain(r): // history files may contain any character
			text = escape(r)
			width = len(text)
		}
		if column+width > columns && len(now.stops) > 0 || column >= columns && width > 0 {
			end(i)
		}
		if i == e.at { // before a line break in a full row, the cursor is on the last character
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

// draw redraws the message in place and positions the cursor. It shows only a part of a message that is taller than the
// terminal.
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

// visible returns the range of rows to show: as many as fit, including the cursor's.
func visible(rows, cursor, height int) (first, end int) {
	height = max(1, height)
	if rows <= height {
		return 0, rows
	}
	first = min(max(0, cursor-height/2), rows-height)
	return first, first + height
}

// finish draws the final message and moves the cursor below it.
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

// write writes to the terminal. It ignores errors: the next read reports a lost terminal.
func (e *Editor) write(text string) { _, _ = e.Out.Write([]byte(text)) }
