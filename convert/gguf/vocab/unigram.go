package vocab

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/tokenizer"
	"github.com/ingotml/ingot/tokenizer/sentencepiece"
)

// unusedScore is the score that llama.cpp's converter gives to tokens that are not pieces.
const unusedScore = -1000

// vocabularyFile is the vocabulary of a model: an object from texts to ids, or Unigram's list of texts and scores.
type vocabularyFile struct {
	ids    map[string]int
	texts  []string
	scores []float32
}

// UnmarshalJSON implements [json.Unmarshaler].
func (v *vocabularyFile) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '[' {
		return json.Unmarshal(data, &v.ids)
	}
	var list []json.RawMessage
	if err := pyjson.Unmarshal(data, &list); err != nil {
		return err
	}
	for i, raw := range list {
		var text string
		var score float32
		if err := pyjson.Unmarshal(raw, &[]any{&text, &score}); err != nil {
			return fmt.Errorf("token %d: %w", i, err)
		}
		v.texts, v.scores = append(v.texts, text), append(v.scores, score)
	}
	return nil
}

// normalization is what a vocabulary of SentencePiece does before it splits text.
type normalization struct {
	prefixed bool // puts a space before a text
	extra    bool // removes spaces at the ends, and all but one between words
	charsmap []byte
}

func (n normalization) pairs() []gguf.Pair {
	out := []gguf.Pair{
		{Key: prefix + "add_space_prefix", Value: gguf.Flag(n.prefixed)},
		{Key: prefix + "remove_extra_whitespaces", Value: gguf.Flag(n.extra)},
	}
	if len(n.charsmap) > 0 {
		out = append(out, gguf.Pair{Key: prefix + "precompiled_charsmap", Value: gguf.Bytes(n.charsmap)})
	}
	return out
}

// grow appends tokens that are not pieces, up to a number of tokens.
func (t *table) grow(size int, scores []float32, added func(id int) (text string, special, ok bool)) []float32 {
	for id := len(t.tokens); id < size; id++ {
		text, kind := fmt.Sprintf("[PAD%d]", id), int32(typeUnused)
		if content, special, ok := added(id); ok {
			if text, kind = content, typeUserDefined; special {
				kind = typeControl
			}
		}
		t.tokens, t.types, scores = append(t.tokens, text), append(t.types, kind), append(scores, unusedScore)
	}
	return scores
}

// finish sets the keys that only vocabularies of SentencePiece have. llama.cpp looks for tokens that users define in
// the text before it replaces spaces.
func (t *table) finish(scores []float32, n normalization) {
	for id, kind := range t.types {
		if kind == typeUserDefined {
			t.tokens[id] = strings.ReplaceAll(t.tokens[id], "▁", " ")
		}
	}
	t.pre = "default"
	t.own = append([]gguf.Pair{{Key: prefix + "scores", Value: gguf.Floats(scores)}}, n.pairs()...)
}

// modelTable reads the tokenizer.model.
func (s Source) modelTable() (t table, err error) {
	refuse := func(what string) (table, error) {
		return table{}, fmt.Errorf("tokenizer.model: %w: %s", ErrVocabulary, what)
	}
	m, err := sentencepiece.Read(s.Model)
	if err != nil {
		return refuse(err.Error())
	}
	tok, err := tokenizer.LoadSentencePiece(s.Model, s.Config)
	if err != nil {
		return refuse(err.Error())
	}
	t.model = "llama"
	if m.Kind == 1 {
		t.model = "t5"
	}
	switch {
	case m.Kind == 1 && m.ByteFallback:
		return refuse("llama.cpp has no Unigram with bytes for what is not in the vocabulary")
	case m.Kind != 1 && len(m.Charsmap) > 0:
		return refuse("llama.cpp has no normalizer before merges of text")
	case m.Kind != 1 && m.RemoveExtra:
		return refuse("llama.cpp removes no extra spaces before merges of text")
	case !m.Escapes:
		return refuse("llama.cpp replaces spaces by ▁")
	}
	var scores []float32
	for id, p := range m.Pieces {
		text, kind := p.Text, int32(p.Kind)
		if other, ok := tok.Token(int32(id)); ok && other != text { // the configuration has replaced it
			text, kind = other, typeControl
		}
		t.tokens, t.types, scores = append(t.tokens, text), append(t.types, kind), append(scores, p.Score)
	}
	scores = t.grow(max(tok.Size(), s.Vocabulary), scores, func(id int) (string, bool, bool) {
		text, ok := tok.Token(int32(id))
		shown, err := tok.Decode([]int32{int32(id)}, true)
		return text, err == nil && shown == "", ok
	})
	var config struct {
		Prefix *bool `json:"add_prefix_space"`
	}
	if s.Config != nil {
		if err := pyjson.Unmarshal(s.Config, &config); err != nil {
			return refuse(err.Error())
		}
	}
	t.finish(scores, normalization{m.DummyPrefix && (config.Prefix == nil || *config.Prefix), m.RemoveExtra, m.Charsmap})
	plain, err := tok.Encode(context.Background(), "a", false)
	if err != nil {
		return refuse(err.Error())
	}
	whole, err := tok.Encode(context.Background(), "a", true)
	if err != nil {
		return refuse(err.Error())
	}
	t.ids = map[string]int{"bos": int(m.Bos), "eos": int(m.Eos), "unknown": int(m.Unk)}
	bos, _ := tok.BOS()
	t.bos = len(whole) > len(plain) && whole[0] == bos
	eos, ok := tok.EOS()
	t.eos = ok && len(whole) > len(plain) && whole[len(whole)-1] == eos
	return t, nil
}

// unigram reads a tokenizer.json whose model is Unigram.
func (f tokenizerFile) unigram(size int, t *table) error {
	texts := f.Model.Vocab.texts
	unknown := f.Model.UnknownID
	switch {
	case f.Model.ByteFallback:
		return fmt.Errorf("%w: llama.cpp has no Unigram with bytes for what is not in the vocabulary", ErrVocabulary)
	case len(texts) == 0:
		return fmt.Errorf("%w: it has no tokens", ErrVocabulary)
	case unknown == nil || *unknown < 0 || *unknown >= len(texts):
		return fmt.Errorf("%w: it has no unknown token", ErrVocabulary)
	}
	n, err := f.unigramSteps()
	if err != nil {
		return err
	}
	t.model = "t5"
	added := map[int]bool{}
	contents := map[int]string{}
	for _, a := range f.Added {
		if size = max(size, a.ID+1); a.ID < 0 || a.ID >= most {
			return fmt.Errorf("%w: the id %d", ErrVocabulary, a.ID)
		}
		added[a.ID], contents[a.ID] = a.Special, a.Content
	}
	for id, text := range texts {
		kind := int32(typeNormal)
		if special, ok := added[id]; ok && special {
			kind = typeControl
		} else if ok {
			kind = typeUserDefined
		}
		if id == *unknown {
			kind = typeUnknown
		}
		t.tokens, t.types = append(t.tokens, text), append(t.types, kind)
	}
	scores := t.grow(size, f.Model.Vocab.scores, func(id int) (string, bool, bool) {
		text, ok := contents[id]
		return text, added[id], ok
	})
	t.finish(scores, n)
	t.ids = map[string]int{"unknown": *unknown}
	return nil
}

// unigramSteps reads what happens before Unigram. Others than SentencePiece's steps are an error.
func (f tokenizerFile) unigramSteps() (n normalization, err error) {
	for _, step := range sequence(f.Normalizer, "normalizers") {
		m, _ := step.(map[string]any)
		pattern, _ := m["pattern"].(map[string]any)
		switch {
		case step == nil:
		case m["type"] == "Precompiled":
			text, _ := m["precompiled_charsmap"].(string)
			if n.charsmap, err = base64.StdEncoding.DecodeString(text); err != nil {
				return n, fmt.Errorf("%w: the charsmap of its normalizer is not base64", ErrVocabulary)
			}
		case m["type"] == "Replace" && pattern["Regex"] == " {2,}" && (m["content"] == " " || m["content"] == "▁"):
			n.extra = true
		case m["type"] == "Strip" && m["strip_right"] == true:
		default:
			return n, fmt.Errorf("%w: llama.cpp has no normalizer %v before Unigram", ErrVocabulary, m["type"])
		}
	}
	spaced := false
	for _, step := range sequence(f.PreTokenizer, "pretokenizers") {
		m, _ := step.(map[string]any)
		switch {
		case m["type"] == "WhitespaceSplit":
			n.extra = true
		case m["type"] == "Metaspace" && m["replacement"] == "▁":
			spaced = true
			n.prefixed = m["prepend_scheme"] != "never" && m["add_prefix_space"] != false
		default:
			return n, fmt.Errorf("%w: llama.cpp has no pre-tokenizer %v before Unigram", ErrVocabulary, m["type"])
		}
	}
	if !spaced {
		return n, fmt.Errorf("%w: llama.cpp has no Unigram without ▁ for spaces", ErrVocabulary)
	}
	return n, nil
}

// sequence returns the steps of a normalizer or pre-tokenizer, whose type may be Sequence.
func sequence(step any, key string) []any {
	if m, ok := step.(map[string]any); ok && m["type"] == "Sequence" {
		list, _ := m[key].([]any)
		return list
	}
	return []any{step}
}
