package encode

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
)

// Read parses the value of "model".
func Read(r *jsonfile.Reader) (Model, error) {
	switch kind := modelType(r); kind {
	case "Unigram":
		return readUnigram(r)
	case "WordPiece", "WordLevel":
		return readWords(r, kind)
	}
	return readBPE(r)
}

// modelType looks ahead for the model's type, usually the first key; "" if there is none. It ignores errors, because
// the model's reader finds them again.
func modelType(r *jsonfile.Reader) (kind string) {
	ahead := *r
	found := errors.New("found")
	_ = ahead.Object(func(key []byte) error {
		if string(key) != "type" || ahead.Peek() != '"' {
			return ahead.Skip()
		}
		s, err := ahead.Str()
		if err == nil {
			kind, err = string(s), found
		}
		return err
	})
	return kind
}

// rankByID is an option that only this program writes: merges rank by the ids of their tokens, so that all merges that
// make one token are equal, as in tiktoken. Others ignore it, and take the order of the merges.
const rankByID = "rank_by_id"

func readBPE(r *jsonfile.Reader) (*bpe, error) {
	m := &bpe{}
	c := jsonfile.Component{Node: &jsonfile.Node{Kind: jsonfile.ObjectNode}, Part: "model"}
	hasMerges, prefixSeen := false, false
	later := -1 // offset of merges that must be read after the keys that follow them
	err := r.Object(func(key []byte) error {
		switch name := string(key); name {
		case "vocab":
			return r.Within(name, func() (err error) {
				m.vocabulary, err = readVocab(r)
				return err
			})
		case "merges":
			if r.Peek() == 'n' {
				return r.Literal("null")
			}
			hasMerges = true
			return r.Within(name, func() error {
				if m.vocabulary == nil || !prefixSeen {
					later = r.Pos
					return r.Skip()
				}
				return m.readMerges(r)
			})
		case "type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
			"fuse_unk", "byte_fallback", "ignore_merges", rankByID:
			return r.Within(name, func() error {
				v, err := r.Value()
				if err != nil {
					return err
				}
				prefixSeen = prefixSeen || name == "continuing_subword_prefix"
				return m.setOption(&c, name, v)
			})
		default:
			return r.Skip()
		}
	})
	if err != nil {
		return nil, err
	}
	switch {
	// As in the reference, merges identify files that are older than the type key.
	case c.Name == "" && !hasMerges:
		return nil, c.Invalid("has no type")
	case m.vocabulary == nil:
		return nil, c.Invalid("has no vocab")
	case !hasMerges:
		return nil, c.Invalid("has no merges")
	case later >= 0:
		end := r.Pos
		r.Pos = later
		if err := r.Within("merges", func() error { return m.readMerges(r) }); err != nil {
			return nil, err
		}
		r.Pos = end
	}
	if m.rankByID {
		for i := range m.merges.slots {
			m.merges.slots[i].rank = uint32(m.merges.slots[i].id)
		}
	}
	return m, nil
}

// setOption stores a scalar option of the model.
func (m *bpe) setOption(c *jsonfile.Component, name string, v *jsonfile.Node) error {
	if v.Kind == jsonfile.NullNode {
		return nil
	}
	want := jsonfile.StringNode
	switch name {
	case "dropout":
		want = jsonfile.NumberNode
	case "fuse_unk", "byte_fallback", "ignore_merges", rankByID:
		want = jsonfile.BoolNode
	}
	if v.Kind != want {
		return c.Invalid("has %v as %s, not %v", v.Kind, name, want)
	}
	switch name {
	case "type":
		if c.Name = v.Text; c.Name != "BPE" {
			return c.Unsupported("is not supported")
		}
	case "dropout":
		if !zeroNumber(v.Text) {
			return c.Unsupported("with dropout is not supported: its tokens would be random")
		}
	case "continuing_subword_prefix", "end_of_word_suffix":
		if len(v.Text) > limits.TokenAffix {
			return c.Unsupported("with a %s of %d bytes is not supported: at most %d", name, len(v.Text), limits.TokenAffix)
		}
	}
	switch name {
	case "unk_token":
		m.unk, m.hasUnk = v.Text, true
	case "continuing_subword_prefix":
		m.prefix = v.Text
	case "end_of_word_suffix":
		m.suffix = v.Text
	case "fuse_unk":
		m.fuseUnk = v.Text != ""
	case "byte_fallback":
		m.byteFallback = v.Text != ""
	case "ignore_merges":
		m.ignoreMerges = v.Text != ""
	case rankByID:
		m.rankByID = v.Text != ""
	}
	return nil
}

func zeroNumber(text string) bool {
	for _, c := range text {
		if c >= '1' && c <= '9' {
			return false
		}
		if c == 'e' || c == 'E' {
			break
		}
	}
	return true
}

// readVocab parses an object from tokens to ids.
func readVocab(r *jsonfile.Reader) (*vocabulary, error) {
	var text []byte
	var entries []entry
	at := r.Pos
	err := r.Object(func(key []byte) error {
		from := len(text)
		text = append(text, key...)
		id, err := r.ID()
		if err == nil && len(key) > limits.TokenBytes {
			return tooLong(r, r.Pos, int(id), len(key))
		}
		entries = append(entries, entry{from, len(text), id})
		return err
	})
	if err != nil {
		return nil, err
	}
	v, a, b, id := newVocabulary(text, entries)
	if v == nil {
		return nil, r.FailAt(at, "tokens %q and %q have the same id %d", a, b, id)
	}
	return v, nil
}

// tooLong is the error about a token of more than limits.TokenBytes bytes.
func tooLong(r *jsonfile.Reader, at, id, bytes int) error {
	return r.FailAt(at, "token %d has %d bytes; at most %d", id, bytes, limits.TokenBytes)
}

// readMerges parses both forms: "a b" (older) and ["a", "b"]. A file uses only one of them.
func (m *bpe) readMerges(r *jsonfile.Reader) error {
	var form byte
	var left []byte
	to := mergeReader{bpe: m, list: make([]mergeSlot, 0, m.Size())}
	err := r.Array(func(i int) error {
		at := r.Pos
		kind := r.Peek()
		if i == 0 {
			form = kind
		}
		if kind != form || kind != '"' && kind != '[' {
			const format = "merge %d differs in form from the first: merges are all \"a b\" or all [\"a\", \"b\"]"
			return r.Fail(format, i)
		}
		var right []byte
		if kind == '"' {
			s, err := r.Str()
			if err != nil {
				return err
			}
			if bytes.HasPrefix(s, []byte("#version")) {
				return nil
			}
			a, b, ok := bytes.Cut(s, []byte(" "))
			if !ok || bytes.IndexByte(b, ' ') >= 0 {
				return r.FailAt(at, "merge %d, %q, is not two tokens with one space between", i, s)
			}
			left, right = append(left[:0], a...), b
		} else {
			n := 0
			err := r.Array(func(j int) error {
				s, err := r.Str()
				if n++; j == 0 {
					left = append(left[:0], s...)
				}
				right = s
				return err
			})
			if err != nil {
				return err
			}
			if n != 2 {
				return r.FailAt(at, "merge %d has %d tokens, not 2", i, n)
			}
		}
		if err := to.add(left, right); err != nil {
			return r.FailAt(at, "merge %d: %v", i, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	m.merges, err = newMergeTable(to.list)
	return err
}

// mergeReader collects the merges of a model.
type mergeReader struct {
	*bpe
	list  []mergeSlot
	union []byte // scratch
	id    int32  // of the merge before
}

func (b *mergeReader) add(left, right []byte) error {
	l, ok := b.ID(view(left))
	if !ok {
		return fmt.Errorf("token %q is not in the vocabulary", left)
	}
	r, ok := b.ID(view(right))
	if !ok {
		return fmt.Errorf("token %q is not in the vocabulary", right)
	}
	if len(right) < len(b.prefix) {
		return fmt.Errorf("token %q is shorter than continuing_subword_prefix %q", right, b.prefix)
	}
	b.union = append(append(b.union[:0], left...), right[len(b.prefix):]...)
	if b.id, ok = b.next(view(b.union)); !ok {
		return fmt.Errorf("the merged token %q is not in the vocabulary", b.union)
	}
	b.list = append(b.list, mergeSlot{pairOf(l, r), uint32(len(b.list)), b.id})
	return nil
}

// next looks up the token of a merge. Merges are usually in the order of their tokens, so it compares with that of the
// merge before and the one that follows, which takes a fraction of the time of a search in a large vocabulary.
func (b *mergeReader) next(token string) (int32, bool) {
	for id := b.id; id <= b.id+1; id++ {
		if t, ok := b.Token(id); ok && t == token {
			return id, true
		}
	}
	return b.ID(token)
}
