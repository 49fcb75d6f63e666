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
	const smallestNormal = 0x1p-126 // FLT_MIN, the reference's initial maximum, although it is not the lowest value
	least, most := float32(math.MaxFloat32), float32(smallestNormal)
	for _, p := range m.Pieces {
		if p.Kind == sentencepiece.Normal {
			least, most = min(least, p.Score), max(most, p.Score)
		}
	}
	u.unkScore = float64(least - unkPenalty)
	var entries []trie.Entry
	for i, p := range m.Pieces {
		u.scores[i] = float64(p.Score)
		switch p.Kind {
		case sentencepiece.UserDefined:
			u.scores[i] = float64(float32(len(p.Text))*most) - 0.1
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
