package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/ingotml/ingot/cmd/terminal"
)

// Screen is a block of lines at the end of a terminal that is redrawn in place. Each change is one write, so that it
// never shows half-drawn. It writes past the terminal's filter and sanitizes the lines itself.
type Screen struct {
	To    io.Writer
	Size  func() (columns, rows int)
	drawn []int // width of each drawn line
}

// Draw replaces the block. It cuts lines to the terminal's width, and keeps the last lines if the terminal is too low.
func (s *Screen) Draw(lines ...string) { s.write(nil, lines) }

// Above prints permanent lines above the block, and redraws it.
func (s *Screen) Above(text []string, lines ...string) { s.write(text, lines) }

// Clear removes the block.
func (s *Screen) Clear() { s.write(nil, nil) }

func (s *Screen) write(above, lines []string) {
	if len(above)+len(lines)+len(s.drawn) == 0 {
		return
	}
	columns, rows := s.Size()
	var b bytes.Buffer
	if up := s.rows(columns); up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteString("\r")
	for _, line := range above {
		b.WriteString(terminal.Line(line) + "\x1b[K\n") // these may wrap
	}
	if most := max(1, rows-1); len(lines) > most { // the cursor needs the last row
		lines = lines[len(lines)-most:]
	}
	s.drawn = s.drawn[:0]
	for _, line := range lines {
		line = Cut(terminal.Line(line), columns-1)
		s.drawn = append(s.drawn, terminal.Columns(line))
		b.WriteString(line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	s.To.Write(b.Bytes())
}

// rows returns the number of terminal rows of the block. A terminal that became narrower has wrapped its lines.
func (s *Screen) rows(columns int) int {
	n := 0
	for _, w := range s.drawn {
		n += max(1, (w+columns-1)/max(1, columns))
	}
	return n
}

// Cut shortens a text in its middle: the names of layers differ most at their ends.
func Cut(s string, columns int) string {
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
