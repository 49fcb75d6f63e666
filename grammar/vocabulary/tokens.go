package vocabulary

import (
	"errors"
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/trie"
)

// ErrVocabulary: the vocabulary lacks tokens that every text of the grammar needs.
var ErrVocabulary = errors.New("the vocabulary cannot express the grammar")

// Tokens is a set of tokens of one vocabulary: those in spans, or all others that exist.
type Tokens struct {
	Spans []expr.IDSpan
	Not   bool
}

func (v *Vocabulary) Resolve(t *expr.Tokens) (set Tokens, err error) {
	set.Not = t.Not
	for _, name := range t.Names {
		id, ok := v.byName(name)
		if !ok {
			return set, expr.Errorf(ErrVocabulary, "%s is not one token of the model; write its text as a literal",
				expr.Clip(name))
		}
		set.Spans = append(set.Spans, expr.IDSpan{First: id, Last: id})
	}
	for _, s := range t.IDs {
		if int(s.Last) >= v.Size() {
			return set, expr.Errorf(ErrVocabulary, "the token id %d; the model has %d", s.Last, v.Size())
		}
		set.Spans = append(set.Spans, s)
	}
	if !set.Not {
		for _, id := range v.ends {
			if set.listed(id) && len(set.Spans) == 1 && set.Spans[0].First == set.Spans[0].Last {
				return set, expr.Errorf(ErrVocabulary, "token %d ends the model's text: leave it out, a text ends where "+
					"the grammar does", id)
			}
		}
	}
	if v.FirstOf(set) == trie.None {
		return set, expr.Errorf(ErrVocabulary, "a token terminal matches no token of the model")
	}
	return set, nil
}

func (v *Vocabulary) byName(name string) (int32, bool) {
	if v.id != nil {
		if id, ok := v.id(name); ok && id >= 0 && int(id) < v.Size() {
			return id, true
		}
	}
	t := int32(-1)
	for i := range len(name) {
		if t = v.All.Child(t, name[i]); t < 0 {
			return 0, false
		}
	}
	n := &v.All.Nodes[t]
	return v.All.First(n), n.Token != trie.None
}

// exists reports whether a token can be generated within a text.
func (v *Vocabulary) exists(id int32) bool {
	return id >= 0 && int(id) < v.Size() && v.usable[id>>5]>>(id&31)&1 != 0
}

func (s Tokens) listed(id int32) bool {
	return slices.ContainsFunc(s.Spans, func(span expr.IDSpan) bool { return span.First <= id && id <= span.Last })
}

func (s Tokens) Has(v *Vocabulary, id int32) bool { return s.listed(id) != s.Not && v.exists(id) }

// FirstOf returns a token of a set, or trie.None.
func (v *Vocabulary) FirstOf(s Tokens) int32 {
	for id := range int32(v.Size()) {
		if s.Has(v, id) {
			return id
		}
	}
	return trie.None
}

// Mark marks the tokens of a set.
func (v *Vocabulary) Mark(bits []uint32, s Tokens) {
	if !s.Not {
		for _, span := range s.Spans {
			for id := span.First; id <= span.Last; id++ {
				if v.exists(id) {
					bits[id>>5] |= 1 << (id & 31)
				}
			}
		}
		return
	}
	others := slices.Clone(v.usable)
	for _, span := range s.Spans {
		for id := span.First; id <= span.Last; id++ {
			others[id>>5] &^= 1 << (id & 31)
		}
	}
	trie.Or(bits, others)
}
