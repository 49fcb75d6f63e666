package params

import (
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
)

// Format is the output format: "json", a JSON schema, or, as an extension, a structural tag,
// "regex:PATTERN", "ebnf:GRAMMAR" or "lark:GRAMMAR".
type Format struct{ runtime.Format }

// UnmarshalJSON implements json.Unmarshaler.
func (f *Format) UnmarshalJSON(b []byte) (err error) {
	f.Format, err = runtime.ParseFormat(b)
	return err
}

// SchemaOptions say how the schemas of a request are compiled. They are extensions.
type SchemaOptions struct {
	StrictSchema bool `json:"strict_schema"` // refuse keywords that the specification lacks
	BestEffort   bool `json:"best_effort"`   // leave out what cannot be enforced; the response says what
}

// With returns the format with the options for its schemas.
func (o SchemaOptions) With(f Format) Format {
	f.StrictSchema, f.BestEffort = o.StrictSchema, o.BestEffort
	if !f.HasSchemas() {
		f.StrictSchema, f.BestEffort = false, false // no schema
	}
	return f
}

// ForPrompt returns the format for the response to a prompt. It does not apply to thinking.
func (f Format) ForPrompt(p *prompt.Prompt) runtime.Format {
	switch {
	case f.Kind == "":
	case p.FinalTag == "":
		f.After = p.Thinking
	case f.Terminal() != "":
		f.Kind, f.Source = runtime.FormatEBNF, p.FinalRules+"root ::= final "+f.Terminal()
	default:
		f.After = p.FinalTag
	}
	return f.Format
}
