package server

import (
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/talk"
)

// format is what an answer has to look like: "json", a JSON schema, or, which is ours, "regex:PATTERN" or "ebnf:GRAMMAR".
type format struct{ runtime.Format }

func (f *format) UnmarshalJSON(b []byte) (err error) {
	f.Format, err = runtime.ParseFormat(b)
	return err
}

// after is the format of the answer to a prompt: what the model thinks before has none.
func (f format) after(p *talk.Prompt) runtime.Format {
	if f.Kind != "" {
		f.After = p.Thinking
	}
	return f.Format
}
