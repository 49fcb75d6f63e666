package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Wrapper writes a stream of text to a terminal. Lines break between words; a word appears as it comes, and moves to the next line
// when it turns out too long for this one. The text is cleaned as [Clean] does: only the Wrapper's own sequences reach the terminal.
type Wrapper struct {
	To      io.Writer
	Columns func() int // of the terminal; nil, or 0 of it: lines are not broken

	column int    // of the cursor
	word   string // the last characters of the line, which a break takes along
	state  cleaner
}

// Write writes text. The bytes of a character may come apart.
func (w *Wrapper) Write(p []byte) (int, error) {
	columns := 0
	if w.Columns != nil {
		columns = w.Columns() - 1 // the cursor is never behind the last column, where terminals differ
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
		if r == ' ' { // the break stands for it
			w.put(b, '\n', columns)
			return
		}
		w.breakLine(b, width == 2)
	}
	b.WriteRune(r)
	w.column += width
	switch {
	case r == ' ' || width == 2: // a line may break behind it
		w.word = ""
	default:
		w.word += string(r)
	}
}

// breakLine goes to the next line, and takes along the word that has begun, unless it is all of the line or ends here.
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

// Column is how many columns of the line are written.
func (w *Wrapper) Column() int { return w.column }
