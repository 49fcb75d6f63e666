// Package jsonread is the one hand-written reader of JSON, for text that ingot does not trust and that is too large to
// build: headers of safetensors files, tokenizers, variables of templates, schemas of grammars. Package jsonfit decodes
// requests with it. All other JSON goes through encoding/json.
//
// Contract:
//   - A Reader walks RFC 8259 text in one pass and builds nothing: its callbacks consume the values and find duplicate
//     keys, whose meaning differs by format. An invalid construct is rejected where it occurs.
//   - Objects and arrays nest at most Options.Nesting deep, a bound that the caller takes from limits. The size of the
//     text is the caller's to bound too.
//   - Strings are UTF-8 without lone surrogates, so that different texts cannot become equal names.
//   - Numbers are returned as text; the caller decides what range and precision it has.
//   - An error is a *Fault, or what Options.Fail makes of it.
//   - A Reader belongs to one goroutine. A copy of it reads ahead without moving the original, but shares the memory of
//     the last string with escapes.
package jsonread

import (
	"unicode/utf8"
)

// Options say how a text is read.
type Options struct {
	// Nesting is how many objects and arrays may contain each other.
	Nesting int
	// ReplaceSurrogates decodes a lone surrogate as U+FFFD instead of rejecting it.
	ReplaceSurrogates bool
	// Fail makes the error of a fault; nil returns the fault. Messages belong to the format.
	Fail func(Fault) error
}

// Reader is a position in a text.
type Reader struct {
	Text []byte // not modified
	Pos  int    // of the next byte

	options Options
	depth   int
	utf8    bool   // the whole text is UTF-8
	buf     []byte // of the last string with escapes
}

// New returns a reader at the start of text, which the caller does not change while it reads.
func New(text []byte, options Options) Reader {
	return Reader{Text: text, options: options, utf8: utf8.Valid(text)}
}

// IsUTF8 reports whether the whole text is UTF-8. A reader of other text fails at the first string that is not.
func (r *Reader) IsUTF8() bool { return r.utf8 }

// Fail returns the error of a fault.
func (r *Reader) Fail(f Fault) error {
	if r.options.Fail != nil {
		return r.options.Fail(f)
	}
	return &f
}

// Unexpected returns the error of the character at Pos.
func (r *Reader) Unexpected(want Want) error { return r.Fail(Fault{Offset: r.Pos, Want: want}) }

// Peek skips white space and returns the next byte without consuming it, or 0 at the end.
func (r *Reader) Peek() byte {
	for ; r.Pos < len(r.Text); r.Pos++ {
		switch c := r.Text[r.Pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// End checks that only white space remains.
func (r *Reader) End() error {
	if r.Peek(); r.Pos < len(r.Text) {
		return r.Unexpected(End)
	}
	return nil
}

// Object calls member at the value of each key; member consumes the value. key is valid until member reads on.
func (r *Reader) Object(member func(key []byte) error) error {
	if empty, err := r.enter('{', '}', Object); empty || err != nil {
		return err
	}
	for {
		if r.Peek() != '"' {
			return r.Unexpected(Key)
		}
		key, err := r.Str()
		if err != nil {
			return err
		}
		if r.Peek() != ':' {
			return r.Unexpected(Colon)
		}
		r.Pos++
		if err := member(key); err != nil {
			return err
		}
		if last, err := r.next('}', ObjectComma); last || err != nil {
			return err
		}
	}
}

// Array calls element at each element, which element consumes.
func (r *Reader) Array(element func(i int) error) error {
	if empty, err := r.enter('[', ']', Array); empty || err != nil {
		return err
	}
	for i := 0; ; i++ {
		if err := element(i); err != nil {
			return err
		}
		if last, err := r.next(']', ArrayComma); last || err != nil {
			return err
		}
	}
}

// enter consumes the start of an object or array, and the end of an empty one.
func (r *Reader) enter(start, end byte, want Want) (empty bool, err error) {
	if r.Peek() != start {
		return false, r.Unexpected(want)
	}
	if r.depth == r.options.Nesting {
		return false, r.Fail(Fault{Problem: TooDeep, Offset: r.Pos})
	}
	r.Pos++
	if r.Peek() == end {
		r.Pos++
		return true, nil
	}
	r.depth++
	return false, nil
}

// next consumes what follows a value of an object or array: a comma, or the end.
func (r *Reader) next(end byte, want Want) (last bool, err error) {
	switch r.Peek() {
	case ',':
	case end:
		r.depth--
		last = true
	default:
		return false, r.Unexpected(want)
	}
	r.Pos++
	return last, nil
}

// Take consumes a literal if it comes next, without white space before it.
func (r *Reader) Take(word string) bool {
	if len(r.Text)-r.Pos < len(word) || string(r.Text[r.Pos:r.Pos+len(word)]) != word {
		return false
	}
	r.Pos += len(word)
	return true
}

// Literal consumes a literal: null, true or false.
func (r *Reader) Literal(word string) error {
	if !r.Take(word) {
		return r.Fail(Fault{Offset: r.Pos, Want: Word, Word: word})
	}
	return nil
}

// Skip consumes any value.
func (r *Reader) Skip() error {
	switch r.Peek() {
	case '{':
		return r.Object(func([]byte) error { return r.Skip() })
	case '[':
		return r.Array(func(int) error { return r.Skip() })
	case '"':
		_, err := r.Str()
		return err
	case 't':
		return r.Literal("true")
	case 'f':
		return r.Literal("false")
	case 'n':
		return r.Literal("null")
	}
	_, err := r.Number()
	return err
}
