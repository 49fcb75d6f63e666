package vocab

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// Source is a tokenizer to write as metadata.
type Source struct {
	Tokenizer  []byte  // tokenizer.json; nil = the model has none
	Model      []byte  // tokenizer.model, which is read if there is no tokenizer.json; nil = the model has none
	Config     []byte  // tokenizer_config.json; nil = none
	EOS        []int32 // of config.json, the most important first
	BOS        []int32
	Vocabulary int // rows of the embedding; those without a token are padded
	Templates  []chat.Named
}

// tokenizerFile is the part of a tokenizer.json that metadata can say.
type tokenizerFile struct {
	Added []struct {
		ID      int
		Content string
		Special bool
	} `json:"added_tokens"`
	Normalizer    any `json:"normalizer"`
	PreTokenizer  any `json:"pre_tokenizer"`
	PostProcessor any `json:"post_processor"`
	Model         struct {
		Type         string
		Vocab        vocabularyFile
		Merges       []json.RawMessage
		IgnoreMerges bool   `json:"ignore_merges"`
		ByteFallback bool   `json:"byte_fallback"`
		Unknown      string `json:"unk_token"`
		UnknownID    *int   `json:"unk_id"` // of Unigram
	} `json:"model"`
}

// Unwritten returns the names of templates that have no key of their own in a file.
func (s Source) Unwritten() []string {
	_, lost := templatePairs(s.Templates)
	return lost
}

// Metadata returns the keys of a tokenizer: the inverse of [Files]. A tokenizer that llama.cpp has no kind for is an
// error wrapping [ErrVocabulary].
func Metadata(s Source) ([]gguf.Pair, error) {
	var t table
	var err error
	switch {
	case s.Tokenizer != nil:
		t, err = s.jsonTable()
	case s.Model != nil:
		t, err = s.modelTable()
	default:
		return []gguf.Pair{{Key: prefix + "model", Value: gguf.Text("none")}}, nil
	}
	if err != nil {
		return nil, err
	}
	out := append([]gguf.Pair{
		{Key: prefix + "model", Value: gguf.Text(t.model)}, {Key: prefix + "pre", Value: gguf.Text(t.pre)},
		{Key: prefix + "tokens", Value: gguf.Texts(t.tokens)}, {Key: prefix + "token_type", Value: gguf.Numbers(t.types)},
		{Key: prefix + "add_bos_token", Value: gguf.Flag(t.bos)}, {Key: prefix + "add_eos_token", Value: gguf.Flag(t.eos)},
	}, t.own...)
	ids, err := s.special(t)
	if err != nil {
		return nil, err
	}
	out = append(out, ids...)
	templates, _ := templatePairs(s.Templates)
	return append(out, templates...), nil
}

// table is what the kinds of tokenizers have in common.
type table struct {
	model, pre string
	tokens     []string
	types      []int32
	bos, eos   bool // are added to a text
	own        []gguf.Pair
	ids        map[string]int // of the special tokens that the tokenizer itself names
}

// jsonTable reads the tokenizer.json.
func (s Source) jsonTable() (t table, err error) {
	var file tokenizerFile
	if err := pyjson.Unmarshal(s.Tokenizer, &file); err != nil {
		return t, fmt.Errorf("tokenizer.json: %w: %w", ErrVocabulary, err)
	}
	t.bos, t.eos = addedTokens(file.PostProcessor)
	if file.Model.Type == "Unigram" {
		err = file.unigram(s.Vocabulary, &t)
		return t, err
	}
	if t.tokens, t.types, err = file.tokens(s.Vocabulary); err != nil {
		return t, err
	}
	if file.spaced() {
		t.model, t.pre = "llama", "default"
		t.own, err = file.pieces(t.tokens, t.types)
		return t, err
	}
	t.model = "gpt2"
	if t.pre, err = file.kind(); err != nil {
		return t, err
	}
	merges, err := file.merges()
	t.own = []gguf.Pair{{Key: prefix + "merges", Value: gguf.Texts(merges)}}
	return t, err
}

// kind finds the kind of pre-tokenizer.
func (f tokenizerFile) kind() (string, error) {
	if f.Model.Type != "BPE" {
		return "", fmt.Errorf("%w: a model of type %s cannot be written as GGUF", ErrVocabulary,
			cmp.Or(f.Model.Type, "unknown"))
	}
	steps := sequence(f.PreTokenizer, "pretokenizers")
	last := len(steps) - 1
	if last < 0 {
		return "", fmt.Errorf("%w: it has no pre-tokenizer", ErrVocabulary)
	}
	bytes, _ := steps[last].(map[string]any)
	if bytes["type"] != "ByteLevel" || bytes["add_prefix_space"] == true {
		return "", fmt.Errorf("%w: its last pre-tokenizer is not ByteLevel without a prefix", ErrVocabulary)
	}
	regex := bytes["use_regex"] != false
	normalizer, _ := f.Normalizer.(map[string]any)
	nfc := normalizer["type"] == "NFC"
	if f.Normalizer != nil && !nfc {
		return "", fmt.Errorf("%w: llama.cpp has no normalizer %v", ErrVocabulary, normalizer["type"])
	}
	best := ""
	for _, name := range append(slices.Clone(usualKinds), Kinds()...) {
		p := pres[name]
		if p.spaces || p.gpt2 != regex || p.ignoreMerges != f.Model.IgnoreMerges || !sameSteps(p.steps, steps[:last]) {
			continue
		}
		if p.nfc == nfc {
			return name, nil
		}
		best = cmp.Or(best, name) // llama.cpp does not normalize
	}
	if best == "" {
		return "", fmt.Errorf("%w: llama.cpp has no kind of pre-tokenizer that splits text as this one", ErrVocabulary)
	}
	return best, nil
}

// usualKinds are preferred to others that split the same.
var usualKinds = []string{"llama-bpe", "qwen2", "qwen35", "gpt-2", "smollm", "glm4", "deepseek-v3", "tekken", "gpt-4o"}

// sameSteps compares steps as JSON has them.
func sameSteps(known, steps []any) bool {
	if len(known) != len(steps) {
		return false
	}
	for i := range known {
		var a any
		text, err := json.Marshal(known[i])
		if err != nil || json.Unmarshal(text, &a) != nil || !reflect.DeepEqual(a, steps[i]) {
			return false
		}
	}
	return true
}

// most is the largest number of tokens.
const most = 1 << 24

// tokens returns the vocabulary by id, and the types.
func (f tokenizerFile) tokens(size int) ([]string, []int32, error) {
	for _, id := range f.Model.Vocab.ids {
		size = max(size, id+1)
	}
	for _, a := range f.Added {
		size = max(size, a.ID+1)
	}
	if size > most {
		return nil, nil, fmt.Errorf("%w: ids up to %d", ErrVocabulary, size)
	}
	tokens, types := make([]string, size), make([]int32, size)
	for text, id := range f.Model.Vocab.ids {
		if id < 0 || types[id] != 0 {
			return nil, nil, fmt.Errorf("%w: two tokens have the id %d", ErrVocabulary, id)
		}
		tokens[id], types[id] = text, typeNormal
	}
	for _, a := range f.Added {
		if a.ID < 0 {
			return nil, nil, fmt.Errorf("%w: the id %d", ErrVocabulary, a.ID)
		}
		if tokens[a.ID], types[a.ID] = a.Content, typeUserDefined; a.Special {
			types[a.ID] = typeControl
		}
	}
	for id := range tokens {
		if types[id] == 0 {
			tokens[id], types[id] = fmt.Sprintf("[PAD%d]", id), typeUnused
		}
	}
	return tokens, types, nil
}

// merges returns the merges as pairs of texts with a space between.
func (f tokenizerFile) merges() ([]string, error) {
	out := make([]string, len(f.Model.Merges))
	for i, raw := range f.Model.Merges {
		var pair []string
		if json.Unmarshal(raw, &out[i]) == nil {
			continue
		}
		if err := json.Unmarshal(raw, &pair); err != nil || len(pair) != 2 {
			return nil, fmt.Errorf("%w: merge %d is not a pair", ErrVocabulary, i)
		}
		out[i] = strings.Join(pair, " ")
	}
	return out, nil
}

// addedTokens reports whether the post-processor puts a token before or after a text.
func addedTokens(processor any) (before, after bool) {
	m, _ := processor.(map[string]any)
	if list, ok := m["processors"].([]any); ok {
		for _, p := range list {
			b, a := addedTokens(p)
			before, after = before || b, after || a
		}
		return before, after
	}
	single, _ := m["single"].([]any)
	text := false
	for _, piece := range single {
		p, _ := piece.(map[string]any)
		if _, ok := p["Sequence"]; ok {
			text = true
		} else if text {
			after = true
		} else {
			before = true
		}
	}
	return before, after
}

// special returns the ids of special tokens: those that tokenizer_config.json names, or else the tokenizer's or
// config.json's.
func (s Source) special(of table) ([]gguf.Pair, error) {
	var config map[string]json.RawMessage
	if s.Config != nil {
		if err := pyjson.Unmarshal(s.Config, &config); err != nil {
			return nil, fmt.Errorf("tokenizer_config.json: %w: %w", ErrVocabulary, err)
		}
	}
	var out []gguf.Pair
	for _, t := range []struct {
		key, to string
		ids     []int32
	}{{"bos_token", "bos", s.BOS}, {"eos_token", "eos", s.EOS}, {"pad_token", "padding", nil},
		{"unk_token", "unknown", nil}} {
		id := -1
		if len(t.ids) > 0 {
			id = int(t.ids[0])
		}
		if own, ok := of.ids[t.to]; ok {
			id = own
		}
		var text string
		var object struct{ Content string }
		if raw := config[t.key]; json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &object) == nil {
			text = object.Content
		}
		if at := slices.Index(of.tokens, text); text != "" && at >= 0 {
			id = at
		}
		if id >= 0 && id < len(of.tokens) {
			out = append(out, gguf.Pair{Key: prefix + t.to + "_token_id", Value: gguf.Number(uint32(id))})
		}
	}
	return out, nil
}
