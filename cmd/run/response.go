package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/cmd/cli"
)

// runToolCall is a tool call in the output.
type runToolCall struct {
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// responseWriter collects a model's response. Without --json it also prints the response as it arrives.
type responseWriter struct {
	result   *runJSON
	out      io.Writer // nil: print nothing
	thoughts io.Writer // nil: do not show thinking
	marks    io.Writer // receives the escape sequences that dim thinking; nil: mark thinking with a word
	ids      bool      // the model has no tokenizer: print token ids
	thinking bool      // thinking is being printed
	inLine   bool      // the last line of the response is not terminated
	printed  bool
}

func newResponseWriter(a *cli.App, result *runJSON, o runOptions) *responseWriter {
	w := &responseWriter{result: result}
	if o.json {
		return w
	}
	w.out, w.ids = a.Out, o.idsOnly
	if o.verbose || a.Err.IsTerminal() && !a.Quiet {
		w.thoughts = a.Err
		if a.Err.IsTerminal() && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
			w.marks = a.Err.Drawing()
		}
	}
	return w
}

func (w *responseWriter) add(events []parse.Event) error {
	for _, e := range events {
		var err error
		switch e.Kind {
		case parse.Thinking:
			w.result.Thinking += e.Text
			err = w.think(e.Text)
		case parse.Call:
			call := runToolCall{e.Call.ID, e.Call.Name, e.Call.Arguments}
			w.result.ToolCalls = append(w.result.ToolCalls, call)
			err = w.call(call)
		default: // a damaged call is passed on as text
			w.result.Text += e.Text
			err = w.write(e.Text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *responseWriter) write(text string) error {
	if w.out == nil || text == "" {
		return nil
	}
	if err := w.endThoughts(); err != nil {
		return err
	}
	w.inLine, w.printed = text[len(text)-1] != '\n', true
	_, err := io.WriteString(w.out, text)
	return err
}

// call prints a tool call on its own line.
func (w *responseWriter) call(call runToolCall) error {
	if w.out == nil {
		return nil
	}
	var line bytes.Buffer
	if w.inLine {
		line.WriteByte('\n')
	}
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(call); err != nil {
		return fmt.Errorf("tool call of %q: %w", call.Name, err)
	}
	return w.write(line.String())
}

const (
	dimOn  = "\x1b[2m"
	dimOff = "\x1b[0m"
)

func (w *responseWriter) think(text string) error {
	if w.thoughts == nil || text == "" {
		return nil
	}
	if !w.thinking {
		w.thinking = true
		if w.marks == nil {
			text = "thinking: " + text
		} else if _, err := io.WriteString(w.marks, dimOn); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w.thoughts, text)
	return err
}

func (w *responseWriter) endThoughts() error {
	if !w.thinking {
		return nil
	}
	w.thinking = false
	if w.marks != nil {
		if _, err := io.WriteString(w.marks, dimOff); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w.thoughts, "\n")
	return err
}

// end terminates the last line. Token ids are printed here as one JSON array, in the format of --prompt-ids.
func (w *responseWriter) end() error {
	if err := w.endThoughts(); err != nil || w.out == nil {
		return err
	}
	if w.ids {
		return json.NewEncoder(w.out).Encode(w.result.IDs)
	}
	if w.printed && !w.inLine && len(w.result.ToolCalls) > 0 {
		return nil
	}
	_, err := fmt.Fprintln(w.out)
	return err
}
