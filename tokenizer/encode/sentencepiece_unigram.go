package encode

import (
	"math"

	"github.com/ingotml/ingot/tokenizer/sentencepiece"
	"github.com/ingotml/ingot/tokenizer/trie"
)

// NewSentencePiece returns the model of a SentencePiece file.
func NewSentencePiece(m *sentencepiece.Model) (Model, error) {
	if m.Kind == 2 {
		return newSentenceBPE(m)
	}
	return newSentenceUnigram(m), nil
}

// sentenceVocabulary returns the vocabulary of a SentencePiece model: an id is a position in the file.
func sentenceVocabulary(m *sentencepiece.Model) *vocabulary {
	tokens := make([]string, len(m.Pieces))
	for i, p := range m.Pieces {
		tokens[i] = p.Text
	}
	return denseVocabulary(tokens)
}

// newSentenceUnigram returns the Unigram of a SentencePiece model (unigram_model.cc). It sums scores in float32,
// user-defined pieces beat all others, and control symbols never match text.
func newSentenceUnigram(m *sentencepiece.Model) *unigram {
	u := &unigram{vocabulary: sentenceVocabulary(m), unk: m.Unk, narrow: true, scores: make([]float64, len(m.Pieces))}
	least := float32(math.MaxFloat32)
	for _, p := range m.Pieces {
		if p.Kind == sentencepiece.Normal {
			least = min(least, p.Score)
		}
	}
	u.unkScore = float64(least - unkPenalty)
	var entries []trie.Entry
	for i, p := range m.Pieces {
		u.scores[i] = float64(p.Score)
		switch p.Kind {
		case sentencepiece.UserDefined:
			u.scores[i] = float64(float32(0.1 * float64(len(p.Text)-1))) // the longest wins
			fallthrough
		case sentencepiece.Normal:
			entries = append(entries, trie.Entry{Text: p.Text, ID: int32(i)})
		}
	}
	u.trie = trie.New(entries)
	if m.ByteFallback {
		u.bytes = u.byteTokens()
	}
	return u
}
