package runtime

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/internal/limits/fault"
)

// Format constrains the generated text. The zero value allows any text.
type Format struct {
	Kind   FormatKind `json:"kind,omitempty"`
	Source string     `json:"source,omitempty"`
	// After is the text after which the format starts, such as the tag that ends thinking; empty: it starts at once.
	After string `json:"after,omitempty"`
	// Within bounds the number of tokens before After; then After is inserted. 0: no bound. It applies without a Kind
	// too. Open may be set only without a Kind, or with Behind: Within then applies only if the generated text begins with
	// Open.
	Within int    `json:"within,omitempty"`
	Open   string `json:"open,omitempty"`
	// Behind is the text before which After does not count, such as the tag that ends thinking, which may mention After;
	// empty: After counts everywhere. With Open, it is needed only if the generated text begins with Open.
	Behind string `json:"behind,omitempty"`
	// Optional says that After may never be generated. If too few tokens are left for the format when it is, the
	// generated text follows the format as far as it goes.
	Optional bool `json:"optional,omitempty"`
	// StrictSchema refuses keywords that the specification of JSON schema lacks. BestEffort leaves out what cannot be
	// enforced exactly, and Event.LeftOut says what. Both apply to schemas, also to those inside a grammar.
	StrictSchema bool `json:"strict_schema,omitempty"`
	BestEffort   bool `json:"best_effort,omitempty"`
}

// HasSchemas reports whether the options for schemas apply.
func (f Format) HasSchemas() bool {
	return f.Kind == FormatSchema || f.Kind == FormatEBNF || f.Kind == FormatLark || f.Kind == FormatTags
}

// ParseFormat parses the JSON value of a format in an API: "json" or a JSON schema as in Ollama's API, a structural
// tag, "regex:PATTERN", "ebnf:GRAMMAR" or "lark:GRAMMAR". null and "" mean no format.
func ParseFormat(value []byte) (Format, error) {
	var text *string
	switch value = bytes.TrimSpace(value); {
	case len(value) > 0 && value[0] == '{':
		return ObjectFormat(value), nil
	case len(value) > 0 && json.Unmarshal(value, &text) != nil:
		text = new("?")
	case text == nil || *text == "":
		return Format{}, nil
	}
	kind, source, sourced := strings.Cut(*text, ":")
	f := Format{Kind: FormatKind(kind), Source: source}
	if f.Kind == FormatJSON && !sourced || sourced && f.Kind.isText() {
		return f, nil
	}
	return Format{}, fmt.Errorf("%w: want json, a JSON schema, regex:PATTERN, ebnf:GRAMMAR or lark:GRAMMAR", ErrFormat)
}

// ObjectFormat returns the format of a JSON object: a structural tag if its type says so, otherwise a JSON schema.
func ObjectFormat(value []byte) Format {
	var of struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(value, &of) == nil && of.Type == string(FormatTags) {
		return Format{Kind: FormatTags, Source: string(value)}
	}
	return Format{Kind: FormatSchema, Source: string(value)}
}

// Terminal returns the terminal by which an EBNF grammar refers to the JSON that the format allows; "" if its kind is
// neither FormatJSON nor FormatSchema.
func (f Format) Terminal() string {
	switch f.Kind {
	case FormatJSON:
		return `%json {"type": "object"}`
	case FormatSchema:
		return "%json " + f.Source
	}
	return ""
}

// Value returns the JSON value that ParseFormat parses.
func (f Format) Value() []byte {
	var text string
	switch f.Kind {
	case FormatSchema, FormatTags:
		return []byte(f.Source)
	case FormatJSON:
		text = string(f.Kind)
	case FormatRegex, FormatEBNF, FormatLark:
		text = string(f.Kind) + ":" + f.Source
	default:
		return []byte("null")
	}
	value, _ := json.Marshal(text) // a string can always be marshaled
	return value
}

// FormatKind is the language of a Format's source.
type FormatKind string

// The kinds. Package grammar documents what it supports of each language.
const (
	FormatJSON   FormatKind = "json"   // any JSON object; there is no source
	FormatSchema FormatKind = "schema" // a JSON schema
	FormatRegex  FormatKind = "regex"  // a regular expression for the whole text
	FormatEBNF   FormatKind = "ebnf"   // a grammar
	FormatLark   FormatKind = "lark"   // a grammar in the syntax of LLGuidance
	FormatTags   FormatKind = "structural_tag"
)

// isText reports whether a source of the kind is written behind its name and a colon.
func (k FormatKind) isText() bool { return k == FormatRegex || k == FormatEBNF || k == FormatLark }

// ErrFormat reports that a format cannot be enforced: its source is invalid, or too few tokens are left for it.
var ErrFormat = fault.Register(errors.New("bad format"), fault.Kind{
	Name: "runtime.ErrFormat", Means: "the output format is invalid, or too few tokens are left for it",
	Rank: fault.Part + 5, Status: fault.Invalid, Wire: "format",
})
