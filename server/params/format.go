package params

import (
	"github.com/ingotml/ingot/chat/prompt"
	"github.com/ingotml/ingot/runtime"
)

// Format is the output format: "json", a JSON schema, or, as an extension, "regex:PATTERN" or "ebnf:GRAMMAR".
type Format struct{ runtime.Format }

// UnmarshalJSON implements json.Unmarshaler.
func (f *Format) UnmarshalJSON(b []byte) (err error) {
	f.Format, err = runtime.ParseFormat(b)
	return err
}

// ForPrompt returns the format for the response to a prompt. It does not apply to thinking.
func (f Format) ForPrompt(p *prompt.Prompt) runtime.Format {
	if f.Kind != "" {
		f.After = p.Thinking
	}
	return f.Format
}
