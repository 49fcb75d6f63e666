package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/ingotml/ingot/chat/parse"
)

// runToolCall is a call of a tool in JSON.
type runToolCall struct {
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// answer collects what a model says and, unless it is for --json, prints it as it comes.
type answer struct {
	result   *runJSON
	out      io.Writer // nil: nothing is printed
	thoughts io.Writer // nil: thinking is not shown
	marks    io.Writer // gets the escape sequences that make thinking dim; nil: a word does
	ids      bool      // there is no text: print the token ids
	thinking bool      // thoughts are being printed
	inLine   bool      // the answer's last line has not ended
	printed  bool
}

func (a *app) answer(result *runJSON, o runOptions) *answer {
	w := &answer{result: result}
	if o.json {
		return w
	}
	w.out, w.ids = a.out, o.idsOnly
	if o.verbose || a.err.IsTerminal() && !a.quiet {
		w.thoughts = a.err
		if a.err.IsTerminal() && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
			w.marks = a.err.Drawing()
		}
	}
	return w
}

func (w *answer) add(events []parse.Event) error {
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
		default: // the text of a damaged call is all that there is
			w.result.Text += e.Text
			err = w.write(e.Text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *answer) write(text string) error {
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

// call prints a call on a line of its own.
func (w *answer) call(call runToolCall) error {
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
		return fmt.Errorf("call of %q: %w", call.Name, err)
	}
	return w.write(line.String())
}

const (
	dimOn  = "\x1b[2m"
	dimOff = "\x1b[0m"
)

func (w *answer) think(text string) error {
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

func (w *answer) endThoughts() error {
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

// end ends the last line. Ids are one, as --prompt-ids takes them.
func (w *answer) end() error {
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
