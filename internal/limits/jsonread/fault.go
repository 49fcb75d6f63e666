package jsonread

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Problem is the kind of a Fault.
type Problem int

// Problems.
const (
	Unexpected    Problem = iota // another character than Want
	Control                      // a control character in a string
	Unterminated                 // the text ends in a string; at its last byte if that is a backslash
	InvalidEscape                // of a string
	LoneSurrogate                // in an escape
	InvalidUTF8                  // of a string
	TooDeep                      // an object or array beyond Options.Nesting
)

// Want is what an Unexpected character stands in place of.
type Want int

// Wants.
const (
	Value Want = iota
	Object
	Array
	String
	Key
	Colon
	ObjectComma // or the end of the object
	ArrayComma  // or the end of the array
	Digit       // of a number that has begun
	Word        // Fault.Word
	End         // of the text
)

// Fault is an error in the text.
type Fault struct {
	Problem Problem
	Offset  int // of the byte where it occurs
	Want    Want
	Word    string // if Want is Word: null, true or another literal
}

// Error describes the fault in one line.
func (f *Fault) Error() string { return fmt.Sprintf("JSON byte %d: %s", f.Offset, f.What()) }

// What describes the fault without its place.
func (f *Fault) What() string {
	return map[Problem]string{
		Control: "control character in a string", Unterminated: "unterminated string", InvalidEscape: "invalid escape",
		LoneSurrogate: "lone surrogate in an escape", InvalidUTF8: "not UTF-8", TooDeep: "nested too deeply",
		Unexpected: "unexpected character",
	}[f.Problem]
}

// Found describes the character at an offset for a message: quoted, or "the end".
func Found(text []byte, offset int) string {
	if offset >= len(text) {
		return "the end"
	}
	c, _ := utf8.DecodeRune(text[offset:])
	return strconv.QuoteRune(c)
}
