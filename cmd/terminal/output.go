package terminal

import (
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Output is a standard stream of the program. Write is for text that may come from outside; [Output.Drawing] is for
// what the program itself draws. It is safe for concurrent use.
type Output struct {
	to       io.Writer
	file     *os.File // the terminal; nil if there is none
	filtered bool

	mu    sync.Mutex
	state cleaner
}

// Data makes a stream for results. On a terminal what is written is cleaned as [Clean] does; files and pipes get
// every byte as it is.
func Data(to io.Writer) *Output {
	o := &Output{to: to}
	if f, ok := to.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		o.file, o.filtered = f, true
	}
	return o
}

// Notes makes a stream for messages, which are cleaned wherever they go: people read logs on a terminal later.
func Notes(to io.Writer) *Output {
	o := Data(to)
	o.filtered = true
	return o
}

// IsTerminal reports whether the stream is a terminal.
func (o *Output) IsTerminal() bool { return o.file != nil }

// File returns the terminal, or nil if the stream is none.
func (o *Output) File() *os.File { return o.file }

// Size returns the size of the terminal, or zeros if it is not known.
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

// Write writes text. The bytes of a character may come in several writes.
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

// Flush writes what is left of a character that did not end.
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

// Drawing returns the way around the filter, for escape sequences of the program. Text from outside has to be clean
// before it is drawn.
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
