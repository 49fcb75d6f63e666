package export

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/arch"
	mapping "github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/gguf/vocab"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/tokenizer"
)

// GGUFMetadata returns the metadata that a GGUF file of a model would have, as far as GGUF can say what the model and
// its tokenizer are. It has no chat templates.
func GGUFMetadata(ctx context.Context, st *store.Store, entry *store.Entry) ([]gguf.Pair, error) {
	src, err := source.OpenImage(ctx, st, entry, source.Options{HeadersOnly: true})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	g, header, err := arch.GGUFOf(src.Model)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", src.From, ErrExport, err)
	}
	list := modelPairs(g, header, entry.Name.String())
	if tokens, _, err := tokenizerPairs(src, g, nil); err == nil { // an error means that llama.cpp has no such kind
		list = append(list, tokens...)
	}
	return list, nil
}

// modelPairs returns the metadata of a model.
func modelPairs(g mapping.Map, header mapping.Header, name string) []gguf.Pair {
	list := []gguf.Pair{
		{Key: "general.architecture", Value: gguf.Text(g.Architecture)}, {Key: "general.type", Value: gguf.Text("model")},
		{Key: "general.name", Value: gguf.Text(name)}, {Key: "general.quantization_version", Value: gguf.Number(2)},
	}
	for _, p := range header.Metadata {
		list = append(list, gguf.Pair{Key: p.Key, Value: ggufValue(p.Value)})
	}
	return list
}

// tokenizerPairs returns the metadata of a model's tokenizer, and notes about what it cannot say.
func tokenizerPairs(src *source.Source, g mapping.Map, templates []chat.Named) (list []gguf.Pair, notes []string,
	err error) {
	facts := vocab.Source{Vocabulary: vocabularyOf(src), Templates: templates}
	if f, ok := src.File("tokenizer.json"); ok {
		facts.Tokenizer = f.Data
	} else if f, ok := src.File("tokenizer.model"); ok {
		facts.Model = f.Data
	}
	if f, ok := src.File("tokenizer_config.json"); ok {
		facts.Config = f.Data
	}
	facts.Config, err = tokenizer.Settings(facts.Config, func(name string) ([]byte, error) {
		f, _ := src.File(name)
		return f.Data, nil
	})
	if err != nil {
		return nil, nil, err
	}
	facts.BOS, facts.EOS = arch.SpecialTokens(src.Model)
	if list, err = vocab.Metadata(facts); err != nil {
		return nil, nil, err
	}
	for _, name := range facts.Unwritten() {
		notes = append(notes, fmt.Sprintf("GGUF has no key for the chat template %q: it is left out", name))
	}
	if facts.Tokenizer == nil && facts.Model == nil && g.Pre != nil {
		list = append(list, gguf.Pair{Key: "tokenizer.ggml.pre", Value: gguf.Text(g.Pre(src.Model))})
	}
	return list, notes, nil
}

func ggufValue(v any) gguf.Value {
	switch v := v.(type) {
	case int:
		return gguf.Number(uint32(v))
	case float32:
		return gguf.Real(v)
	case bool:
		return gguf.Flag(v)
	case []int:
		list := make([]int32, len(v))
		for i, n := range v {
			list[i] = int32(n)
		}
		return gguf.Numbers(list)
	case []bool:
		return gguf.Flags(v)
	}
	return gguf.Text(fmt.Sprint(v))
}

// vocabularyOf returns the rows of the embedding.
func vocabularyOf(src *source.Source) int {
	specs := src.Model.Table().Specs
	if len(specs) == 0 || len(specs[0].Shape) != 2 {
		return 0
	}
	return int(specs[0].Shape[0])
}
