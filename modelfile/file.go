package modelfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/internal/limits/clip"
)

// ErrModelfile matches every [*Error] with [errors.Is].
var ErrModelfile = errors.New("bad Modelfile")

// The commands of a Modelfile.
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

// roles are the roles that a MESSAGE can have.
var roles = []string{"system", "user", "assistant"}

// Command is one command of a Modelfile. A quoted value may span several lines.
type Command struct {
	Name  string // one of the constants
	Key   string // name of a PARAMETER or role of a MESSAGE, otherwise empty
	Value string // without quotes
	Line  int    // line of the command's first letter, from 1; 0 if it was not parsed
	Col   int    // column in characters, from 1
}

// File is a parsed Modelfile.
type File struct {
	Name     string // file name for messages, such as "Modelfile"; empty if there is no file
	Commands []Command
}

// All returns the commands with a name, in order.
func (f *File) All(name string) []Command {
	var out []Command
	for _, c := range f.Commands {
		if c.Name == name {
			out = append(out, c)
		}
	}
	return out
}

// Errorf returns an error about a command of the file.
func (f *File) Errorf(c Command, format string, args ...any) error {
	text := c.Name
	if c.Key != "" {
		text += " " + c.Key
	}
	return &Error{File: f.Name, Line: c.Line, Col: c.Col, Msg: fmt.Sprintf(format, args...), Text: text + " " + c.Value}
}

// Error describes a problem in a Modelfile and its position.
type Error struct {
	File      string
	Line, Col int    // from 1; 0: the file as a whole
	Msg       string // the problem
	Text      string // the offending text
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
	return fmt.Sprintf("%s%s: %q", where, e.Msg, clip.Text(e.Text, maxQuoted))
}

// Unwrap returns [ErrModelfile].
func (e *Error) Unwrap() error { return ErrModelfile }

// maxQuoted limits the characters of a quotation in a message.
const maxQuoted = 40

// blanks are the characters that separate words and surround values. Other white space, such as a no-break space, is
// text.
const blanks = " \t\v\f\r"

func trim(s string) string { return strings.Trim(s, blanks) }
