package parse

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat/parse/calls"
	"github.com/ingotml/ingot/internal/limits/clip"
)

// Errors of New and of damaged calls.
var (
	ErrUnknownParser = errors.New("unknown parser")
	ErrCall          = errors.New("bad tool call")        // malformed
	ErrIncomplete    = errors.New("incomplete tool call") // the text ended inside the call
)

// Kind is the kind of an event.
type Kind int

// The kinds of events.
const (
	Content  Kind = iota // text of the response
	Thinking             // text of the thinking
	Call                 // a tool call
	Damaged              // the text of a malformed or incomplete tool call; Err says why
)

func (k Kind) String() string {
	return [...]string{"content", "thinking", "call", "damaged"}[k]
}

// Event is a piece of a model's output.
type Event struct {
	Kind Kind
	Text string // of Content, Thinking and Damaged
	Call ToolCall
	Err  error // of Damaged: wraps ErrCall or ErrIncomplete
}

// ToolCall is one tool call.
type ToolCall struct {
	ID        string // "" if the model gave none
	Name      string
	Arguments json.RawMessage // a compact JSON object, keys in the model's order
}

// Tags are the opening and closing tag of thinking.
type Tags struct{ Open, Close string }

// Options describe the prompt that the model continues.
type Options struct {
	Tools []calls.Tool // none: no text is a call
	// Thinking means that the prompt already opened the thinking; see [Opens].
	Thinking bool
	// Think are thinking tags that the template has, besides those of the format.
	Think Tags
	// MaxCall bounds the text of one call in bytes; 0 means 4 MiB.
	MaxCall int
}

const defaultMaxCall = 4 << 20

// Parser parses one response. It is not safe for concurrent use.
type Parser interface {
	// Feed parses more text and returns the events that are certain so far.
	Feed(text string) []Event
	// Close ends the text and returns the remaining events. The error is that of the first damaged event since New.
	Close() ([]Event, error)
}

// New returns a parser for a format or alias. The zero Options suit a conversation without tools.
func New(name string, opts Options) (Parser, error) {
	f, ok := lookup(name)
	if !ok {
		return nil, fmt.Errorf("%w %q (known: %s)", ErrUnknownParser, excerpt(name), strings.Join(Names(), ", "))
	}
	if f.parser != nil {
		return f.parser(opts), nil
	}
	return newMachine(f, opts), nil
}

// Names returns the names of the formats in sorted order, without aliases.
func Names() []string {
	out := make([]string, 0, len(formats))
	for name := range formats {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Abilities reports whether a format has tool calls and thinking. An unknown format has neither.
func Abilities(name string) (tools, thinking bool) {
	f, ok := lookup(name)
	if !ok {
		return false, false
	}
	return f.syntax != nil, f.think.Close != ""
}

// Known reports whether New accepts a name, which may be an alias.
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

// Merge merges adjacent events of text.
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

// excerpt shortens text quoted in a message.
func excerpt(s string) string { return clip.Text(s, 40) }
