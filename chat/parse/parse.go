package parse

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Errors of calls.
var (
	ErrUnknownParser = errors.New("unknown parser")
	ErrCall          = errors.New("bad tool call")        // it cannot be read
	ErrIncomplete    = errors.New("incomplete tool call") // the text ended inside it
)

// Kind says what an event is.
type Kind int

// The kinds of events.
const (
	Content  Kind = iota // text of the answer
	Thinking             // text of the thinking
	Call                 // a tool call
	Damaged              // the text of something that began as a tool call and is none; Err says why
)

func (k Kind) String() string {
	return [...]string{"content", "thinking", "call", "damaged"}[k]
}

// Event is a piece of what a model says.
type Event struct {
	Kind Kind
	Text string // of Content, Thinking and Damaged
	Call ToolCall
	Err  error // of Damaged: an ErrCall or ErrIncomplete
}

// ToolCall is one call of a tool.
type ToolCall struct {
	ID        string // where the model gave one
	Name      string
	Arguments json.RawMessage // an object, without white space between its tokens, keys in the model's order
}

// Tool is what the parser needs to know of a tool that the model was offered.
type Tool struct {
	Name       string
	Parameters json.RawMessage // JSON schema of the arguments; may be empty
}

// Tags enclose thinking.
type Tags struct{ Open, Close string }

// Options tell what the model was told.
type Options struct {
	Tools []Tool
	// Thinking says that the prompt has opened the thinking already; see [Opens].
	Thinking bool
	// Think are the tags of the thinking, where they are other ones than those of the format.
	Think Tags
	// MaxCall bounds the text of one call in bytes; 0 = 4 MiB.
	MaxCall int
}

const defaultMaxCall = 4 << 20

// Parser takes a model's text apart. It is for one answer and one goroutine.
type Parser interface {
	// Feed takes the next text and returns what is certain by now.
	Feed(text string) []Event
	// Close says that the text has ended and returns the rest. The error is that of the first damaged event of all.
	Close() ([]Event, error)
}

// New makes the parser of a format. The zero Options are right for a model that was offered no tools.
func New(name string, opts Options) (Parser, error) {
	f, ok := lookup(name)
	if !ok {
		return nil, fmt.Errorf("%w %q (known: %s)", ErrUnknownParser, clip(name), strings.Join(Names(), ", "))
	}
	return newMachine(f, opts), nil
}

// Names lists the formats, sorted; aliases are not among them.
func Names() []string {
	out := make([]string, 0, len(formats))
	for name := range formats {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Abilities tells what a format knows: tool calls, thinking. An unknown one knows nothing.
func Abilities(name string) (tools, thinking bool) {
	f, ok := lookup(name)
	if !ok {
		return false, false
	}
	return len(f.forms) > 0, f.think.Close != ""
}

// Known tells whether New knows a format, by its name or an alias.
func Known(name string) bool {
	_, ok := lookup(name)
	return ok
}

func lookup(name string) (*format, bool) {
	if other, ok := aliases[name]; ok {
		name = other
	}
	f, ok := formats[name]
	return f, ok
}

// Merge joins adjacent events of text.
func Merge(events []Event) []Event {
	var out []Event
	for i := 0; i < len(events); {
		e := events[i]
		j := i + 1
		if e.Kind == Content || e.Kind == Thinking {
			var text strings.Builder
			text.WriteString(e.Text)
			for ; j < len(events) && events[j].Kind == e.Kind; j++ {
				text.WriteString(events[j].Text)
			}
			e.Text = text.String()
		}
		out = append(out, e)
		i = j
	}
	return out
}

// clip shortens what a message quotes.
func clip(s string) string {
	const limit = 40
	n := 0
	for i := range s {
		if n++; n > limit {
			return s[:i] + "..."
		}
	}
	return s
}
