package parse

import (
	"bytes"
	"unicode/utf8"
)

// apart is written between two texts of a kind that only dropped tags separate.
const apart = "\n\n"

// maxGap bounds the white space that is kept next to dropped tags, in bytes.
const maxGap = 256

// writer collects the events of a parser.
type writer struct {
	text  []byte // of the current event
	kind  Kind
	out   []Event
	err   error   // the first error
	seams [2]seam // of content and thinking
}

// seam is where text of one kind goes on after a dropped tag or a call, so that it does not run together.
type seam struct {
	last byte   // the last byte of the text so far; 0: there is none
	open bool   // tags were dropped since
	gap  []byte // the last white space next to them
}

// put appends text of a kind, content or thinking.
func (w *writer) put(k Kind, text []byte) {
	if len(text) == 0 {
		return
	}
	w.join(k, text[0])
	w.add(k, text)
}

// join writes white space before text that begins with next, if it would run together with the text of its kind before
// dropped tags.
func (w *writer) join(k Kind, next byte) {
	s := &w.seams[k]
	if !s.open {
		return
	}
	if s.last != 0 && !isSpace(s.last) && !isSpace(next) {
		if len(s.gap) == 0 {
			s.gap = []byte(apart)
		}
		w.add(k, s.gap)
	}
	s.open, s.gap = false, nil
}

func (w *writer) add(k Kind, text []byte) {
	if k != w.kind {
		w.flush(true)
		w.kind = k
	}
	w.text = append(w.text, text...)
	w.seams[k].last = text[len(text)-1]
}

// part notes that tags are dropped in text of a kind, next to white space.
func (w *writer) part(k Kind, space []byte) {
	s := &w.seams[k]
	s.open = true
	if len(space) > 0 {
		s.gap = append(s.gap[:0], space[:min(len(space), maxGap)]...)
	}
}

// call emits calls.
func (w *writer) call(calls []ToolCall) {
	w.flush(true)
	for _, c := range calls {
		w.out = append(w.out, Event{Kind: Call, Call: c})
	}
}

// damaged emits the text of a call that cannot be used.
func (w *writer) damaged(text string, err error) {
	w.join(Content, text[0])
	w.flush(true)
	w.seams[Content].last = text[len(text)-1]
	if w.err == nil {
		w.err = err
	}
	w.out = append(w.out, Event{Kind: Damaged, Text: text, Err: err})
}

// flush emits the collected text. An incomplete character at its end stays, unless all is set.
func (w *writer) flush(all bool) {
	n := len(w.text)
	if !all {
		n -= partialRune(w.text)
	}
	if n > 0 {
		w.out = append(w.out, Event{Kind: w.kind, Text: string(w.text[:n])})
		w.text = append(w.text[:0], w.text[n:]...)
	}
}

// take returns the events that are complete.
func (w *writer) take() []Event {
	w.flush(false)
	out := w.out
	w.out = nil
	return out
}

// backlog is text that is processed again, before what follows it.
type backlog struct {
	todo       [][]byte // the last one first
	fed, again int      // bytes that came in, and bytes that were processed again
}

// maxAgain is the number of bytes of any text that may be processed again, besides four times its length.
const maxAgain = 64 << 10

// repeat has text processed again.
func (l *backlog) repeat(text []byte) {
	l.again += len(text)
	l.todo = append(l.todo, bytes.Clone(text))
}

// feed passes a text to f, and after each byte the text that f wants to process again.
func (l *backlog) feed(text string, f func(b byte)) {
	for i := range len(text) {
		l.fed++
		f(text[i])
		l.each(f)
	}
}

// each passes the text that is to be processed again to f, which may add to it.
func (l *backlog) each(f func(b byte)) {
	for n := len(l.todo) - 1; n >= 0; n = len(l.todo) - 1 {
		if len(l.todo[n]) == 0 {
			l.todo = l.todo[:n]
			continue
		}
		b := l.todo[n][0]
		l.todo[n] = l.todo[n][1:]
		f(b)
	}
}

// tired reports whether so much was processed again that no more should be.
func (l *backlog) tired() bool { return l.again > maxAgain+4*l.fed }

// partialRune returns the length of the incomplete character at the end of text.
func partialRune(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}
