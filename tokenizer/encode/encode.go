// Package encode has the models that convert pieces of text to ids: BPE, Unigram, WordPiece and WordLevel, and
// SentencePiece's BPE and Unigram.
//
// Contract: a Model is immutable after FollowSplit and safe for concurrent use; each text is encoded with an Encoder of
// its own. Encoding takes O(n log n) time for every piece of n bytes. What the vocabulary cannot represent is ErrToken.
package encode

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
	// Append appends the ids of a non-empty piece.
	Append(ids []int32, piece string) ([]int32, error)
	Release()
}

// vocabulary maps tokens to ids and back.
type vocabulary struct {
	table  *wordTable // of a compiled model; nil: the fields below, which are nil otherwise
	ids    map[string]int32
	dense  []string         // by id, if the ids are dense enough
	sparse map[int32]string // otherwise
	top    int32            // one more than the highest id
}

// newVocabulary inverts ids. If two tokens share an id, it returns a nil vocabulary, the tokens and the id: decoding
// would be ambiguous.
func newVocabulary(ids map[string]int32) (v *vocabulary, a, b string, id int32) {
	v = &vocabulary{ids: ids}
	for _, id := range ids {
		v.top = max(v.top, id+1)
	}
	if int(v.top) <= 2*len(ids)+1<<16 {
		v.dense = make([]string, v.top)
	} else {
		v.sparse = make(map[int32]string, len(ids))
	}
	for token, id := range ids {
		if token == "" { // found through ids: "" marks a missing id in dense
			continue
		}
		if other, taken := v.Token(id); taken {
			return nil, min(token, other), max(token, other), id
		}
		if v.sparse != nil {
			v.sparse[id] = token
		} else {
			v.dense[id] = token
		}
	}
	return v, "", "", 0
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
		if s, ok := v.sparse[id]; ok {
			return s, true
		}
	} else if id >= 0 && int(id) < len(v.dense) && v.dense[id] != "" {
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

func (v *vocabulary) Limit() int32 { return v.top }

// IsBPE reports whether the model is a BPE.
func IsBPE(m Model) bool {
	switch m.(type) {
	case *bpe, *sentenceBPE:
		return true
	}
	return false
}
