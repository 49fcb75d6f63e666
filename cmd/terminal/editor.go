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

// ErrInterrupted means that the user pressed Ctrl-C while editing a message.
var ErrInterrupted = errors.New("interrupted")

// maxMessage bounds a message in characters, and the unread input of a paste in bytes.
const maxMessage = 4 << 20

// Editor reads messages from a terminal. Set the fields before the first Read; In and Out are required.
type Editor struct {
	In      io.Reader
	Out     io.Writer
	Size    func() (columns, rows int)               // size of the terminal; nil: 80 x 24
	Raw     func() (restore func() error, err error) // enables raw mode; nil: the input is raw already
	Suspend func()                                   // suspends the program until the user resumes it; nil: not supported
	History *History                                 // may be nil
	Hint    string                                   // shown dim in an empty message; may be empty

	unread []byte // input that is not processed yet
	killed []rune // text that Ctrl-K and the other kill keys removed last

	// State of the current message.
	prompt, more string
	text         []rune
	at           int      // position of the cursor in characters
	drawn        int      // row of the cursor in the drawn block
	past         []string // history entries, then the new message; edits to them last until Read returns
	shown        int      // index in past of the entry being edited
}

// NewEditor returns an editor for a terminal.
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

// Read lets the user edit a message and returns it on Enter. prompt precedes the first line, and more the other lines.
// Read returns io.EOF if Ctrl-D is pressed in an empty message, ErrInterrupted with the text on Ctrl-C, or the error of
// the context.
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
		if _, _, n := decode(e.unread); n == 0 { // draw once per burst of input
			e.draw()
		}
	}
}

const (
	pasteOn  = "\x1b[?2004h" // enables bracketed paste
	pasteOff = "\x1b[?2004l"
)

// begin enables raw mode and bracketed paste, and returns a function that disables them.
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

// fill waits for more input. A read that was abandoned when its context ended may still consume some.
func (e *Editor) fill(ctx context.Context) error {
	if n := len(e.unread); n > maxMessage { // an oversized paste: drop its middle, but keep the end marker
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

// press executes a key that does not end the message.
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

// pasted returns the characters that pasted text adds to a message.
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

// left and right move over a character with its combining marks.
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

// home and last return the start and the end of the line that contains position i.
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

// vertical moves the cursor up or down a row. From the first or last row it moves through the history.
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

// show replaces the text by another entry of past.
func (e *Editor) show(i int) {
	if i < 0 || i >= len(e.past) {
		return
	}
	e.past[e.shown] = string(e.text)
	e.shown = i
	e.text = []rune(e.past[i])
	e.at = len(e.text)
}
