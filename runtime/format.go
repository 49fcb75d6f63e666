package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/ingotml/ingot/grammar"
	"github.com/ingotml/ingot/tokenizer"
)

// Format is what an answer has to look like. The zero value is any text.
type Format struct {
	Kind   FormatKind `json:"kind,omitempty"`
	Source string     `json:"source,omitempty"`
	After  string     `json:"after,omitempty"` // it begins after this text, such as the tag that ends thinking; empty: at once
	// Within is how many tokens may come before the text that it begins after: then that is said, whatever the model wants. 0: any number.
	// It holds without a Kind too. With Open, which is for no Kind, it holds where the answer begins with that text.
	Within int    `json:"within,omitempty"`
	Open   string `json:"open,omitempty"`
	// Optional says that the text which it begins after need not come. Where it comes with too few tokens left for anything of the format,
	// the answer keeps to it as far as it gets.
	Optional bool `json:"optional,omitempty"`
}

// ParseFormat reads the JSON value that stands for a format in an API: as Ollama has it the word "json" or a schema, and beyond that
// "regex:PATTERN" and "ebnf:GRAMMAR"; null and the empty text are none.
func ParseFormat(value []byte) (Format, error) {
	var text *string
	switch value = bytes.TrimSpace(value); {
	case len(value) > 0 && value[0] == '{':
		return Format{Kind: FormatSchema, Source: string(value)}, nil
	case len(value) > 0 && json.Unmarshal(value, &text) != nil:
		text = new("?")
	case text == nil || *text == "":
		return Format{}, nil
	}
	kind, source, sourced := strings.Cut(*text, ":")
	f := Format{Kind: FormatKind(kind), Source: source}
	if f.Kind == FormatJSON && !sourced || sourced && (f.Kind == FormatRegex || f.Kind == FormatEBNF) {
		return f, nil
	}
	return Format{}, fmt.Errorf("%w: want json, a JSON schema, regex:PATTERN or ebnf:GRAMMAR", ErrFormat)
}

// Value is what ParseFormat reads.
func (f Format) Value() []byte {
	var text string
	switch f.Kind {
	case FormatSchema:
		return []byte(f.Source)
	case FormatJSON:
		text = string(f.Kind)
	case FormatRegex, FormatEBNF:
		text = string(f.Kind) + ":" + f.Source
	default:
		return []byte("null")
	}
	value, _ := json.Marshal(text) // of a text it cannot fail
	return value
}

// FormatKind is the language of a Format's source.
type FormatKind string

// The languages. Package grammar says what of them it knows.
const (
	FormatJSON   FormatKind = "json"   // any JSON object; there is no source
	FormatSchema FormatKind = "schema" // a JSON schema
	FormatRegex  FormatKind = "regex"  // a regular expression for the whole text
	FormatEBNF   FormatKind = "ebnf"   // a grammar
)

// ErrFormat says that a format cannot be held: its source is bad, or there are too few tokens for anything of it.
var ErrFormat = errors.New("bad format")

// vocabulary gives the bytes of a tokenizer's tokens, as far as a model has scores for them.
func vocabulary(t *tokenizer.Tokenizer, scores int64) *grammar.Vocabulary {
	tokens := make([][]byte, min(int64(t.Size()), scores))
	for id := range tokens {
		tokens[id], _ = t.Bytes(int32(id))
	}
	return grammar.NewVocabulary(tokens, func(text string) ([]int32, error) { return t.Encode(text, false) })
}

// formats are the grammars of a model's requests, compiled once.
type formats struct {
	vocabulary func() *grammar.Vocabulary // made when it is first wanted

	mu       sync.Mutex
	compiled map[Format]*grammar.Grammar
}

// mostFormats are kept.
const maxFormats = 64

// grammar compiles a format, or finds it.
func (f *formats) grammar(ctx context.Context, of Format) (*grammar.Grammar, error) {
	of = Format{Kind: of.Kind, Source: of.Source}
	f.mu.Lock()
	g := f.compiled[of]
	f.mu.Unlock()
	if g != nil {
		return g, nil
	}
	g, err := of.compile(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.compiled == nil {
		f.compiled = map[Format]*grammar.Grammar{}
	}
	for old := range f.compiled { // any of them
		if len(f.compiled) < maxFormats {
			break
		}
		delete(f.compiled, old)
	}
	f.compiled[of] = g
	return g, nil
}

func (f Format) compile(ctx context.Context) (*grammar.Grammar, error) {
	switch f.Kind {
	case FormatJSON:
		return grammar.JSONObject(), nil
	case FormatSchema:
		return grammar.CompileSchema(ctx, []byte(f.Source))
	case FormatRegex:
		return grammar.CompileRegex(ctx, f.Source)
	case FormatEBNF:
		return grammar.CompileEBNF(ctx, f.Source)
	}
	return nil, fmt.Errorf("%q is none of json, schema, regex and ebnf", f.Kind)
}
