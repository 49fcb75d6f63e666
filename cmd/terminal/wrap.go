package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Wrapper writes a stream of text to a terminal and breaks lines between words. A word appears as it arrives, and moves
// to the next line if it does not fit. The text is cleaned like [Clean] does: only the Wrapper's own sequences reach
// the terminal.
type Wrapper struct {
	To      io.Writer
	Columns func() int // width of the terminal; nil or a result of 0 disables wrapping

	column int    // column of the cursor
	word   string // last characters of the line, which move with a break
	state  cleaner
}

// Write writes text. A character may be split between writes.
func (w *Wrapper) Write(p []byte) (int, error) {
	columns := 0
	if w.Columns != nil {
		columns = w.Columns() - 1 // leave the last column free: terminals differ in how they wrap there
	}
	var b strings.Builder
	for text := w.state.clean(p); len(text) > 0; {
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		w.put(&b, r, columns)
	}
	if b.Len() == 0 {
		return len(p), nil
	}
	if _, err := io.WriteString(w.To, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *Wrapper) put(b *strings.Builder, r rune, columns int) {
	switch {
	case r == '\n':
		b.WriteByte('\n')
		w.column, w.word = 0, ""
		return
	case r == '\t':
		for range len(tab) - w.column%len(tab) {
			w.put(b, ' ', columns)
		}
		return
	}
	width := runeColumns(r)
	if columns > 1 && w.column+width > columns {
		if r == ' ' { // the break replaces the space
			w.put(b, '\n', columns)
			return
		}
		w.breakLine(b, width == 2)
	}
	b.WriteRune(r)
	w.column += width
	switch {
	case r == ' ' || width == 2: // a line may break after this character
		w.word = ""
	default:
		w.word += string(r)
	}
}

// breakLine starts a new line and moves the current word to it, unless the word fills the line or ends here.
func (w *Wrapper) breakLine(b *strings.Builder, ends bool) {
	n := Columns(w.word)
	if n == 0 || n == w.column || ends {
		b.WriteByte('\n')
		w.column, w.word = 0, ""
		return
	}
	fmt.Fprintf(b, "\x1b[%dD\x1b[K\n%s", n, w.word)
	w.column = n
}

// Column returns the column of the cursor in the line.
func (w *Wrapper) Column() int { return w.column }
