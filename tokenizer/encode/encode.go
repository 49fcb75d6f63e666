// Package encode has the models that convert pieces of text to ids: BPE, Unigram, WordPiece and WordLevel, and
// SentencePiece's BPE and Unigram.
//
// Contract: a Model is immutable after FollowSplit and safe for concurrent use; each text is encoded with an Encoder of
// its own. Encoding takes O(n log n) time for every piece of n bytes. What the vocabulary cannot represent is ErrToken.
package encode

import (
	"maps"
	"slices"

	"github.com/ingotml/ingot/internal/limits/work"
)

// Model converts pieces of text to ids. It is immutable; each Encode works with an encoder of its own.
type Model interface {
	Encoder() encoder
	ID(token string) (int32, bool)
	Token(id int32) (string, bool)
	Size() int    // number of distinct tokens; ids of added tokens start there in the reference
	Limit() int32 // one more than the highest id
}

// encoder is the working memory of one Encode. release returns it for reuse.
type encoder interface {
	// Append appends the ids of a non-empty piece, and spends its work.
	Append(m *work.Meter, ids []int32, piece string) ([]int32, error)
	Release()
}

// vocabulary maps tokens to ids and back.
type vocabulary struct {
	table  *wordTable // nil: the fields below, which are nil otherwise
	ids    map[string]int32
	dense  []string         // by id, if the ids are dense enough
	sparse map[int32]string // otherwise
	top    int32            // one more than the highest id
}

// newVocabulary makes the vocabulary of a file's tokens. Of equal ones the last one wins. If two different ones share
// an id, it returns a nil vocabulary, the tokens and the id: decoding would be ambiguous.
func newVocabulary(text []byte, entries []entry) (v *vocabulary, a, b string, id int32) {
	if t := newWordTable(text, entries); t != nil {
		return &vocabulary{table: t, top: int32(len(t.ends))}, "", "", 0
	}
	last := make(map[string]entry, len(entries))
	for _, e := range entries {
		last[string(text[e.from:e.to])] = e
	}
	if len(last) < len(entries) {
		return newVocabulary(text, slices.Collect(maps.Values(last)))
	}
	v = &vocabulary{ids: make(map[string]int32, len(last)), sparse: make(map[int32]string, len(last))}
	for token, e := range last {
		v.top = max(v.top, e.id+1)
		if other, taken := v.sparse[e.id]; taken {
			return nil, min(token, other), max(token, other), e.id
		}
		v.ids[token], v.sparse[e.id] = e.id, token
	}
	return v, "", "", 0
}

// denseVocabulary makes the vocabulary of a list of tokens: an id is a position. Of equal ones the last one has the
// text, and each has its id.
func denseVocabulary(tokens []string) *vocabulary {
	size := 0
	for _, token := range tokens {
		size += len(token)
	}
	text, entries := make([]byte, 0, size), make([]entry, len(tokens))
	for i, token := range tokens {
		text = append(text, token...)
		entries[i] = entry{len(text) - len(token), len(text), int32(i)}
	}
	if t := newWordTable(text, entries); t != nil {
		return &vocabulary{table: t, top: int32(len(tokens))}
	}
	v := &vocabulary{ids: make(map[string]int32, len(tokens)), dense: tokens, top: int32(len(tokens))}
	for i, token := range tokens {
		v.ids[token] = int32(i)
	}
	return v
}

func (v *vocabulary) Token(id int32) (string, bool) {
	if t := v.table; t != nil {
		if id < 0 || id >= v.top {
			return "", false
		}
		s := t.token(id)
		return s, s != "" || id == t.empty
	}
	if v.sparse != nil {
		s, ok := v.sparse[id]
		return s, ok
	}
	if id >= 0 && int(id) < len(v.dense) && v.dense[id] != "" {
		return v.dense[id], true
	}
	empty, ok := v.ids[""]
	return "", ok && empty == id
}

func (v *vocabulary) ID(token string) (int32, bool) {
	if v.table != nil {
		return v.table.id(token)
	}
	id, ok := v.ids[token]
	return id, ok
}

func (v *vocabulary) Size() int {
	if v.table != nil {
		return v.table.count
	}
	return len(v.ids)
}

// all calls f for each token of a file's vocabulary.
func (v *vocabulary) all(f func(token string, id int32)) {
	for id, token := range v.sparse {
		f(token, id)
	}
	if v.sparse != nil {
		return
	}
	for id := range v.top {
		if token, ok := v.Token(id); ok {
			f(token, id)
		}
	}
}

func (v *vocabulary) Limit() int32 { return v.top }

// IsBPE reports whether the model is a BPE.
func IsBPE(m Model) bool {
	switch m.(type) {
	case *bpe, *sentenceBPE:
		return true
	}
	return false
}
