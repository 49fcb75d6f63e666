package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// ErrInterrupted says that Ctrl-C was pressed while a message was being written.
var ErrInterrupted = errors.New("interrupted")

// maxMessage bounds a message in characters, and what is read of a paste in bytes.
const maxMessage = 4 << 20

// Editor reads messages from a terminal. Its fields are set before the first Read, In and Out at least.
type Editor struct {
	In      io.Reader
	Out     io.Writer
	Size    func() (columns, rows int)               // of the terminal; nil: 80 x 24
	Raw     func() (restore func() error, err error) // has the terminal give keys as they are pressed; nil: it does
	Suspend func()                                   // stops the program until the user goes on with it; nil: nothing does
	History *History                                 // may be nil
	Hint    string                                   // shown dim where a message is empty; "" is none

	unread []byte // keys that were pressed and have had no effect yet
	killed []rune // what Ctrl-K and its like took last

	// Of the message that is being written.
	prompt, more string
	text         []rune
	at           int      // the cursor, in characters
	drawn        int      // the row of the cursor in the block that was drawn
	past         []string // what the history has, and last the message itself, which others of it are looked at in place of
	shown        int      // which of past is in text
}

// NewEditor is an editor on a terminal.
func NewEditor(in, out *os.File) *Editor {
	return &Editor{
		In: in, Out: out,
		Size: func() (int, int) {
			if columns, rows, err := term.GetSize(int(out.Fd())); err == nil && columns > 0 && rows > 0 {
				return columns, rows
			}
			return 80, 24
		},
		Raw:     func() (func() error, error) { return raw(in, out) },
		Suspend: suspend,
	}
}

// Read lets the user write a message. Its first line stands behind a prompt, others behind another one. It ends with io.EOF when
// Ctrl-D was pressed where nothing is written, with ErrInterrupted and what was written when Ctrl-C was, and with the context's error.
func (e *Editor) Read(ctx context.Context, prompt, more string) (message string, err error) {
	restore, err := e.begin()
	if err != nil {
		return "", err
	}
	defer func() {
		if failed := restore(); err == nil {
			err = failed
		}
	}()
	e.prompt, e.more = prompt, more
	e.text, e.at, e.drawn = nil, 0, 0
	e.past = append(e.History.entries(), "")
	e.shown = len(e.past) - 1
	e.draw()
	for {
		k, text, n := decode(e.unread)
		if n == 0 {
			if err := e.fill(ctx); err != nil {
				e.finish()
				return "", err
			}
			continue
		}
		text = slices.Clone(text)
		e.unread = e.unread[n:]
		switch k {
		case keyEnter:
			e.finish()
			return string(e.text), nil
		case keyInterrupt:
			e.finish()
			return string(e.text), ErrInterrupted
		case keyEnd:
			if len(e.text) == 0 {
				e.finish()
				return "", io.EOF
			}
			e.erase(e.at, e.right(e.at))
		case keySuspend:
			if err := e.suspended(&restore); err != nil {
				return "", err
			}
		case keyClear:
			e.write("\x1b[H\x1b[2J")
			e.drawn = 0
		default:
			e.press(k, string(text))
		}
		if _, _, n := decode(e.unread); n == 0 { // what comes in one go is drawn in one go
			e.draw()
		}
	}
}

const (
	pasteOn  = "\x1b[?2004h" // the terminal marks what it pastes
	pasteOff = "\x1b[?2004l"
)

// begin has the terminal give its keys, and gives what ends that.
func (e *Editor) begin() (restore func() error, err error) {
	cooked := func() error { return nil }
	if e.Raw != nil {
		if cooked, err = e.Raw(); err != nil {
			return nil, err
		}
	}
	e.write(pasteOn)
	return func() error {
		e.write(pasteOff)
		return cooked()
	}, nil
}

func (e *Editor) suspended(restore *func() error) error {
	if e.Suspend == nil {
		return nil
	}
	e.finish()
	if err := (*restore)(); err != nil {
		return err
	}
	*restore = func() error { return nil }
	e.Suspend()
	again, err := e.begin()
	if err == nil {
		*restore = again
	}
	e.drawn = 0
	return err
}

// fill waits for more keys. A read that was given up when the context ended may still take what comes next.
func (e *Editor) fill(ctx context.Context) error {
	if n := len(e.unread); n > maxMessage { // a paste that is too long: its middle is lost, its end must not be
		e.unread = append(e.unread[:maxMessage/2], e.unread[n-len(pasteEnd):]...)
		e.write("\a")
	}
	type result struct {
		b   []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		b := make([]byte, 4096)
		n, err := e.In.Read(b)
		done <- result{b[:n], err}
	}()
	select {
	case r := <-done:
		e.unread = append(e.unread, r.b...)
		if len(r.b) > 0 {
			return nil
		}
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// press carries a key out that ends nothing.
func (e *Editor) press(k key, text string) {
	switch k {
	case keyText:
		e.insert([]rune(text))
	case keyPaste:
		e.insert(pasted(text))
	case keyNewline:
		e.insert([]rune{'\n'})
	case keyLeft:
		e.at = e.left(e.at)
	case keyRight:
		e.at = e.right(e.at)
	case keyWordLeft:
		e.at = e.wordLeft(e.at)
	case keyWordRight:
		e.at = e.wordRight(e.at)
	case keyHome:
		e.at = e.home(e.at)
	case keyLast:
		e.at = e.last(e.at)
	case keyUp, keyDown:
		e.vertical(k)
	case keyOlder:
		e.show(e.shown - 1)
	case keyNewer:
		e.show(e.shown + 1)
	case keyBackspace:
		e.erase(e.left(e.at), e.at)
	case keyDelete:
		e.erase(e.at, e.right(e.at))
	case keyKillWordLeft:
		e.kill(e.wordLeft(e.at), e.at)
	case keyKillWordRight:
		e.kill(e.at, e.wordRight(e.at))
	case keyKillToHome:
		e.kill(e.home(e.at), e.at)
	case keyKillToLast:
		e.kill(e.at, e.last(e.at))
	case keyYank:
		e.insert(e.killed)
	case keySwap:
		if i := min(e.at, len(e.text)-1); i > 0 && e.text[i] != '\n' && e.text[i-1] != '\n' {
			e.text[i-1], e.text[i] = e.text[i], e.text[i-1]
			e.at = i + 1
		}
	}
}

// pasted is what a pasted text adds to a message.
func pasted(text string) []rune {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	return []rune(strings.Map(func(r rune) rune {
		if Plain(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, "\ufffd")))
}

func (e *Editor) insert(text []rune) {
	if len(e.text)+len(text) > maxMessage {
		return
	}
	e.text = slices.Insert(e.text, e.at, text...)
	e.at += len(text)
}

func (e *Editor) erase(from, to int) {
	e.text = slices.Delete(e.text, from, to)
	e.at = from
}

func (e *Editor) kill(from, to int) {
	if from == to {
		return
	}
	e.killed = slices.Clone(e.text[from:to])
	e.erase(from, to)
}

// left and right go over a character with the marks that combine with it.
func (e *Editor) left(i int) int {
	for i > 0 {
		i--
		if e.starts(i) {
			break
		}
	}
	return i
}

func (e *Editor) right(i int) int {
	for i < len(e.text) {
		i++
		if i == len(e.text) || e.starts(i) {
			break
		}
	}
	return i
}

func (e *Editor) starts(i int) bool {
	return (runeColumns(e.text[i]) > 0 || !Plain(e.text[i])) && (i == 0 || e.text[i-1] != zeroWidthJoiner)
}

func (e *Editor) wordLeft(i int) int {
	for i > 0 && !inWord(e.text[i-1]) {
		i--
	}
	for i > 0 && inWord(e.text[i-1]) {
		i--
	}
	return i
}

func (e *Editor) wordRight(i int) int {
	for i < len(e.text) && !inWord(e.text[i]) {
		i++
	}
	for i < len(e.text) && inWord(e.text[i]) {
		i++
	}
	return i
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || unicode.In(r, unicode.Mn, unicode.Me)
}

// home and last are the ends of the line that the cursor is on.
func (e *Editor) home(i int) int {
	for i > 0 && e.text[i-1] != '\n' {
		i--
	}
	return i
}

func (e *Editor) last(i int) int {
	for i < len(e.text) && e.text[i] != '\n' {
		i++
	}
	return i
}

// vertical goes up or down a row of the message, and beyond its first and last one through the history.
func (e *Editor) vertical(k key) {
	columns, _ := e.size()
	l := e.layout(columns)
	row, step := l.row-1, -1
	if k == keyDown {
		row, step = l.row+1, 1
	}
	if row < 0 || row >= len(l.rows) {
		e.show(e.shown + step)
		return
	}
	e.at = l.nearest(row, l.column)
}

// show puts another entry of the history in the place of the message.
func (e *Editor) show(i int) {
	if i < 0 || i >= len(e.past) {
		return
	}
	e.past[e.shown] = string(e.text)
	e.shown = i
	e.text = []rune(e.past[i])
	e.at = len(e.text)
}
