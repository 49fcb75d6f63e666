package modelfile

import (
	"errors"
	"fmt"
	"strings"
)

// ErrModelfile is what every [*Error] is.
var ErrModelfile = errors.New("bad Modelfile")

// The commands.
const (
	From      = "FROM"
	License   = "LICENSE"
	Template  = "TEMPLATE"
	System    = "SYSTEM"
	Adapter   = "ADAPTER"
	Draft     = "DRAFT"
	Renderer  = "RENDERER"
	Parser    = "PARSER"
	Parameter = "PARAMETER"
	Message   = "MESSAGE"
	Requires  = "REQUIRES"
)

var commands = []string{From, License, Template, System, Adapter, Draft, Renderer, Parser, Parameter, Message, Requires}

// roles are those that a MESSAGE may have.
var roles = []string{"system", "user", "assistant"}

// Command is one line of a Modelfile, or several where the value is quoted.
type Command struct {
	Name  string // one of the constants, upper case
	Key   string // the name of a PARAMETER, the role of a MESSAGE, else empty
	Value string // without quotes
	Line  int    // of the command's first letter, counted from 1; 0 when it was not parsed
	Col   int    // in characters, counted from 1
}

// File is a parsed Modelfile.
type File struct {
	Name     string // for messages, e.g. "Modelfile"; empty when there is no file
	Commands []Command
}

// All returns the commands of one name, in order.
func (f *File) All(name string) []Command {
	var out []Command
	for _, c := range f.Commands {
		if c.Name == name {
			out = append(out, c)
		}
	}
	return out
}

// Errorf makes an error about a command of the file.
func (f *File) Errorf(c Command, format string, args ...any) error {
	text := c.Name
	if c.Key != "" {
		text += " " + c.Key
	}
	return &Error{File: f.Name, Line: c.Line, Col: c.Col, Msg: fmt.Sprintf(format, args...), Text: text + " " + c.Value}
}

// Error says what is wrong in a Modelfile, and where.
type Error struct {
	File      string
	Line, Col int    // counted from 1; 0 = the file as a whole
	Msg       string // what is wrong
	Text      string // the text that is wrong
}

func (e *Error) Error() string {
	var where string
	switch {
	case e.Line > 0 && e.File == "":
		where = fmt.Sprintf("line %d:%d: ", e.Line, e.Col)
	case e.Line > 0:
		where = fmt.Sprintf("%s:%d:%d: ", e.File, e.Line, e.Col)
	case e.File != "":
		where = e.File + ": "
	}
	if e.Text == "" {
		return where + e.Msg
	}
	return fmt.Sprintf("%s%s: %q", where, e.Msg, clip(e.Text))
}

// Unwrap makes the error an [ErrModelfile].
func (e *Error) Unwrap() error { return ErrModelfile }

// clip shortens what a message quotes.
func clip(s string) string {
	const limit = 40
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "..."
	}
	return s
}

// blanks separate words and surround values. Others, like a no-break space, are text.
const blanks = " \t\v\f\r"

func trim(s string) string { return strings.Trim(s, blanks) }
