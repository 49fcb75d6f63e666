package tokenizer

// model converts pieces of text to ids. It is immutable; each Encode works with an encoder of its own.
type model interface {
	encoder() encoder
	id(token string) (int32, bool)
	token(id int32) (string, bool)
	size() int    // number of distinct tokens; ids of added tokens start there in the reference
	limit() int32 // one more than the highest id
}

// encoder is the working memory of one Encode. release returns it for reuse.
type encoder interface {
	// append appends the ids of a non-empty piece.
	append(ids []int32, piece string) ([]int32, error)
	release()
}

// vocabulary maps tokens to ids and back.
type vocabulary struct {
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
		if other, taken := v.token(id); taken {
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

func (v *vocabulary) token(id int32) (string, bool) {
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

func (v *vocabulary) id(token string) (int32, bool) {
	id, ok := v.ids[token]
	return id, ok
}

func (v *vocabulary) size() int    { return len(v.ids) }
func (v *vocabulary) limit() int32 { return v.top }
