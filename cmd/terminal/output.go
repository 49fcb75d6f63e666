package terminal

import (
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Output is a standard stream of the program. Write takes text that may be untrusted; [Output.Drawing] takes the
// program's own sequences. It is safe for concurrent use.
type Output struct {
	to       io.Writer
	file     *os.File // the terminal; nil if there is none
	filtered bool

	mu    sync.Mutex
	state cleaner
}

// Data returns a stream for results. On a terminal, text is cleaned like [Clean] does; files and pipes get every byte
// unchanged.
func Data(to io.Writer) *Output {
	o := &Output{to: to}
	if f, ok := to.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		o.file, o.filtered = f, true
	}
	return o
}

// Notes returns a stream for messages. They are always cleaned, because people read logs on terminals later.
func Notes(to io.Writer) *Output {
	o := Data(to)
	o.filtered = true
	return o
}

// IsTerminal reports whether the stream is a terminal.
func (o *Output) IsTerminal() bool { return o.file != nil }

// File returns the terminal, or nil if the stream is not one.
func (o *Output) File() *os.File { return o.file }

// Size returns the size of the terminal, or zeros if it is unknown.
func (o *Output) Size() (columns, rows int) {
	if o.file == nil {
		return 0, 0
	}
	columns, rows, err := term.GetSize(int(o.file.Fd()))
	if err != nil || columns <= 0 || rows <= 0 {
		return 0, 0
	}
	return columns, rows
}

// Write writes text. A character may be split between writes.
func (o *Output) Write(p []byte) (int, error) {
	if !o.filtered {
		return o.to.Write(p)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.put(o.state.clean(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes the replacement of an incomplete last character.
func (o *Output) Flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.put(o.state.rest())
}

func (o *Output) put(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_, err := o.to.Write(p)
	return err
}

// Drawing returns a writer that bypasses the filter, for the program's own escape sequences. Clean untrusted text
// before drawing it.
func (o *Output) Drawing() io.Writer { return drawing{o} }

type drawing struct{ o *Output }

func (d drawing) Write(p []byte) (int, error) {
	d.o.mu.Lock()
	defer d.o.mu.Unlock()
	if err := d.o.put(d.o.state.rest()); err != nil {
		return 0, err
	}
	return d.o.to.Write(p)
}
