package constraint

import (
	"context"
	"fmt"
	"sync"

	"github.com/ingotml/ingot/grammar"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/tokenizer"
)

// vocabulary returns the tokens for which the model has logits.
func vocabulary(t *tokenizer.Tokenizer, ends []int32, logits int64) *grammar.Vocabulary {
	tokens := make([][]byte, min(int64(t.Size()), logits))
	o := grammar.VocabularyOptions{
		Encode: func(text string) ([]int32, error) { return t.Encode(context.Background(), text, false) },
		ID:     t.ID, Ends: ends,
	}
	for id := range tokens {
		tokens[id], _ = t.Bytes(int32(id))
		if _, exists := t.Token(int32(id)); exists && len(tokens[id]) == 0 {
			o.Special = append(o.Special, int32(id))
		}
	}
	return grammar.NewVocabularyWith(tokens, o)
}

// Formats makes the constraints of a model's requests and caches their compiled grammars. It is safe for concurrent
// use.
type Formats struct {
	tok        *tokenizer.Tokenizer       // nil without one: every format is then an error
	ends       []int32                    // end-of-sequence tokens
	vocabulary func() *grammar.Vocabulary // computed on first use

	mu       sync.Mutex
	compiled map[owned]*grammar.Grammar
}

// owned is a format of an owner. What one owner has compiled does not make another one's request faster, which would
// tell that the schema was there.
type owned struct {
	owner  string
	format runtime.Format
}

// New returns the formats of a model with the given tokenizer, end-of-sequence tokens and number of logits.
func New(tok *tokenizer.Tokenizer, ends []int32, logits int64) *Formats {
	return &Formats{
		tok: tok, ends: ends,
		vocabulary: sync.OnceValue(func() *grammar.Vocabulary { return vocabulary(tok, ends, logits) }),
	}
}

// maxFormats bounds the number of compiled grammars.
const maxFormats = 64

// grammar returns the compiled grammar of an owner's format.
func (f *Formats) grammar(ctx context.Context, owner string, of runtime.Format) (*grammar.Grammar, error) {
	of = runtime.Format{Kind: of.Kind, Source: of.Source, StrictSchema: of.StrictSchema, BestEffort: of.BestEffort}
	key := owned{owner, of}
	f.mu.Lock()
	g := f.compiled[key]
	f.mu.Unlock()
	if g != nil {
		return g, nil
	}
	g, err := compile(ctx, of)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", runtime.ErrFormat, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.compiled == nil {
		f.compiled = map[owned]*grammar.Grammar{}
	}
	for old := range f.compiled { // evict any of them
		if len(f.compiled) < maxFormats {
			break
		}
		delete(f.compiled, old)
	}
	f.compiled[key] = g
	return g, nil
}

func compile(ctx context.Context, f runtime.Format) (*grammar.Grammar, error) {
	o := grammar.SchemaOptions{Strict: f.StrictSchema, BestEffort: f.BestEffort}
	switch f.Kind {
	case runtime.FormatJSON:
		return grammar.JSONObject(), nil
	case runtime.FormatSchema:
		return grammar.CompileSchemaWith(ctx, []byte(f.Source), o)
	case runtime.FormatRegex:
		return grammar.CompileRegex(ctx, f.Source)
	case runtime.FormatEBNF:
		return grammar.CompileEBNFWith(ctx, f.Source, o)
	case runtime.FormatLark:
		return grammar.CompileLark(ctx, f.Source, o)
	case runtime.FormatTags:
		return grammar.CompileTags(ctx, []byte(f.Source), o)
	}
	return nil, fmt.Errorf("unknown format kind %q: want json, schema, regex, ebnf, lark or structural_tag", f.Kind)
}
