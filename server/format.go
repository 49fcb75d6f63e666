package server

import (
	"github.com/ingotml/ingot/chat/prompt"
	"github.com/ingotml/ingot/runtime"
)

// format is the output format: "json", a JSON schema, or, as an extension, "regex:PATTERN" or "ebnf:GRAMMAR".
type format struct{ runtime.Format }

func (f *format) UnmarshalJSON(b []byte) (err error) {
	f.Format, err = runtime.ParseFormat(b)
	return err
}

// after returns the format for the response to a prompt. It does not apply to thinking.
func (f format) after(p *prompt.Prompt) runtime.Format {
	if f.Kind != "" {
		f.After = p.Thinking
	}
	return f.Format
}
