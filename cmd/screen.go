package cmd

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/ingotml/ingot/cmd/terminal"
)

// screen is a block of lines at the end of a terminal that is drawn over in place. Each change is one write, so that nobody
// sees half of it. It draws around the filter of its terminal, and cleans the lines itself.
type screen struct {
	to    io.Writer
	size  func() (columns, rows int)
	drawn []int // columns of the lines that are there
}

// draw replaces the block. Lines are cut to what the terminal holds, and those at the end win where it is too low.
func (s *screen) draw(lines ...string) { s.write(nil, lines) }

// above puts lines that stay above the block, and draws it again.
func (s *screen) above(text []string, lines ...string) { s.write(text, lines) }

// clear takes the block away.
func (s *screen) clear() { s.write(nil, nil) }

func (s *screen) write(above, lines []string) {
	if len(above)+len(lines)+len(s.drawn) == 0 {
		return
	}
	columns, rows := s.size()
	var b bytes.Buffer
	if up := s.rows(columns); up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteString("\r")
	for _, line := range above {
		b.WriteString(terminal.Line(line) + "\x1b[K\n") // these may wrap
	}
	if most := max(1, rows-1); len(lines) > most { // the cursor is on the line below
		lines = lines[len(lines)-most:]
	}
	s.drawn = s.drawn[:0]
	for _, line := range lines {
		line = cut(terminal.Line(line), columns-1)
		s.drawn = append(s.drawn, terminal.Columns(line))
		b.WriteString(line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	s.to.Write(b.Bytes())
}

// rows is how many rows the block takes; a terminal that has become narrower has wrapped its lines.
func (s *screen) rows(columns int) int {
	n := 0
	for _, w := range s.drawn {
		n += max(1, (w+columns-1)/max(1, columns))
	}
	return n
}

// cut shortens a text in its middle, where names of layers differ least.
func cut(s string, columns int) string {
	if terminal.Columns(s) <= columns {
		return s
	}
	const gap = ".."
	if columns <= len(gap) {
		return strings.Repeat(".", max(0, columns))
	}
	room := columns - len(gap)
	r := []rune(s)
	head, tail, left := 0, len(r), room/3
	for head < tail && left >= terminal.Columns(string(r[head])) {
		left -= terminal.Columns(string(r[head]))
		head++
	}
	left += room - room/3
	for tail > head && left >= terminal.Columns(string(r[tail-1])) {
		left -= terminal.Columns(string(r[tail-1]))
		tail--
	}
	return string(r[:head]) + gap + string(r[tail:])
}
