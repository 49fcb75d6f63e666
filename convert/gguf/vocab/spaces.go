package vocab

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/convert/gguf"
)

// spaced reports whether a tokenizer replaces spaces by ▁ and merges text, as SentencePiece does.
func (f tokenizerFile) spaced() bool { return f.Model.Type == "BPE" && f.Model.ByteFallback }

// pieces returns the keys that only a vocabulary of SentencePiece has. llama.cpp merges the pair whose result has the
// largest score, which is the one of the first merge.
// https://github.com/google/sentencepiece/blob/master/src/bpe_model.cc
func (f tokenizerFile) pieces(tokens []string, types []int32) ([]gguf.Pair, error) {
	prefixed, err := f.prefixed()
	if err != nil {
		return nil, err
	}
	merges, err := f.merges()
	if err != nil {
		return nil, err
	}
	ranks := make(map[string]int, len(merges))
	for i, merge := range merges {
		result := strings.Replace(merge, " ", "", 1)
		if _, ok := ranks[result]; !ok {
			ranks[result] = i
		}
	}
	scores := make([]float32, len(tokens))
	for id, text := range tokens {
		rank, ok := ranks[text]
		if !ok {
			rank = len(merges) + id
			if types[id] == typeNormal && f.splits(text) {
				return nil, fmt.Errorf("%w: no merge makes token %d, %.40q, but llama.cpp would merge it", ErrVocabulary, id, text)
			}
		}
		scores[id] = -float32(rank)
		if types[id] == typeNormal && isByte(text) {
			types[id] = typeByte
		}
		if text == f.Model.Unknown {
			types[id] = typeUnknown
		}
	}
	return []gguf.Pair{
		{Key: prefix + "scores", Value: gguf.Floats(scores)}, {Key: prefix + "add_space_prefix", Value: gguf.Flag(prefixed)},
	}, nil
}

// splits reports whether a text is two tokens of the vocabulary.
func (f tokenizerFile) splits(text string) bool {
	for i := range text {
		_, first := f.Model.Vocab.ids[text[:i]]
		_, second := f.Model.Vocab.ids[text[i:]]
		if first && second {
			return true
		}
	}
	return false
}

// isByte reports whether a token stands for a byte: <0x0A>.
func isByte(text string) bool {
	return len(text) == 6 && strings.HasPrefix(text, "<0x") && strings.HasSuffix(text, ">")
}

// prefixed reports whether a text gets a space before it. Others than SentencePiece's steps are an error.
func (f tokenizerFile) prefixed() (bool, error) {
	prefixed, replaced := false, false
	for _, step := range sequence(f.Normalizer, "normalizers") {
		m, _ := step.(map[string]any)
		pattern, _ := m["pattern"].(map[string]any)
		switch {
		case step == nil:
		case m["type"] == "Prepend" && m["prepend"] == "▁":
			prefixed = true
		case m["type"] == "Replace" && pattern["String"] == " " && m["content"] == "▁":
			replaced = true
		default:
			return false, fmt.Errorf("%w: llama.cpp has no normalizer %v before merges of text", ErrVocabulary, m["type"])
		}
	}
	m, _ := f.PreTokenizer.(map[string]any)
	pattern, _ := m["pattern"].(map[string]any)
	switch {
	case m == nil && replaced, m["type"] == "Split" && pattern["String"] == " " && replaced:
		return prefixed, nil
	case m["type"] == "Metaspace" && m["replacement"] == "▁" && m["split"] == false && f.Normalizer == nil:
		return m["prepend_scheme"] != "never", nil
	}
	return false, fmt.Errorf("%w: llama.cpp has no pre-tokenizer %v before merges of text", ErrVocabulary, m["type"])
}
