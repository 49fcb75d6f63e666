package run

import (
	"bytes"
	"testing"

	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/chat/parse/calls"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/terminal"
)

// TestResponse checks where the parts of a response are written.
func TestResponse(t *testing.T) {
	events := func(name, text string) (out []parse.Event) {
		t.Helper()
		p, err := parse.New(name, parse.Options{Tools: []calls.Tool{{Name: "f"}}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range len(text) {
			out = append(out, p.Feed(text[i:i+1])...)
		}
		rest, _ := p.Close()
		return append(out, rest...)
	}
	const call = `<tool_call>{"name": "f", "arguments": {"a": "<b>"}}</tool_call>`
	for _, c := range []struct {
		name, parser, text string
		o                  runOptions
		out, err           string
		want               runJSON
	}{
		{"text", "hermes", "Hi\nyou", runOptions{}, "Hi\nyou\n", "", runJSON{Text: "Hi\nyou"}},
		{"thinking is not shown", "hermes", "<think>\nhm\n</think>\n\nHi", runOptions{},
			"Hi\n", "", runJSON{Text: "Hi", Thinking: "hm"}},
		{"thinking is shown", "hermes", "<think>hm</think>Hi", runOptions{verbose: true},
			"Hi\n", "thinking: hm\n", runJSON{Text: "Hi", Thinking: "hm"}},
		{"only thinking", "hermes", "<think>hm</think>", runOptions{verbose: true},
			"\n", "thinking: hm\n", runJSON{Thinking: "hm"}},
		{"a call", "hermes", call, runOptions{}, `{"name":"f","arguments":{"a":"<b>"}}` + "\n", "", runJSON{}},
		{"text and a call", "hermes", "Look" + call, runOptions{},
			"Look\n" + `{"name":"f","arguments":{"a":"<b>"}}` + "\n", "", runJSON{Text: "Look"}},
		{"JSON prints nothing here", "hermes", "<think>hm</think>Hi", runOptions{json: true, verbose: true},
			"", "", runJSON{Text: "Hi", Thinking: "hm"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			a := &cli.App{Out: terminal.Data(&out), Err: terminal.Notes(&errs)}
			var result runJSON
			w := newResponseWriter(a, &result, c.o)
			if err := w.add(events(c.parser, c.text)); err != nil {
				t.Fatal(err)
			}
			if err := w.end(); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.out || errs.String() != c.err {
				t.Errorf("printed %q and %q, want %q and %q", &out, &errs, c.out, c.err)
			}
			if result.Text != c.want.Text || result.Thinking != c.want.Thinking {
				t.Errorf("text %q, thinking %q; want %q, %q", result.Text, result.Thinking, c.want.Text, c.want.Thinking)
			}
		})
	}
}
