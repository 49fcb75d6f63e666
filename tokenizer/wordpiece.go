package tokenizer

import (
	"unicode/utf8"
)

// wordPiece takes the longest token that is a prefix of a piece, then the longest continuation token, and so on
// (models/wordpiece of the reference).
type wordPiece struct {
	*vocabulary
	trie      *trie
	unk       string
	continues int32 // the trie node below which continuation tokens are; -1: there are none
	maxChars  int   // in a word; longer words become the unknown token
}

// wordLevel only encodes whole pieces.
type wordLevel struct {
	*vocabulary
	unk string
}

// readWords parses a WordPiece or WordLevel model.
func readWords(r *jsonReader, kind string) (model, error) {
	c := component{node: &node{kind: objectNode}, part: "model", name: kind}
	var vocab *vocabulary
	err := r.object(func(key []byte) error {
		switch name := string(key); name {
		case "vocab":
			return r.within(name, func() (err error) {
				vocab, err = readVocab(r)
				return err
			})
		case "unk_token", "continuing_subword_prefix", "max_input_chars_per_word":
			return r.within(name, func() error {
				v, err := r.value()
				c.keys = append(c.keys, name)
				c.list = append(c.list, v)
				return err
			})
		}
		return r.skip()
	})
	if err != nil {
		return nil, err
	}
	if vocab == nil {
		return nil, c.invalid("has no vocab")
	}
	unk, err := c.str("unk_token")
	if err != nil {
		return nil, err
	}
	if kind == "WordLevel" {
		return &wordLevel{vocab, unk}, nil
	}
	prefix, err := c.str("continuing_subword_prefix")
	if err != nil {
		return nil, err
	}
	if _, err := c.field("max_input_chars_per_word", numberNode); err != nil {
		return nil, err
	}
	limit, err := c.count("max_input_chars_per_word", 0, maxID)
	if err != nil {
		return nil, err
	}
	entries := make([]trieEntry, 0, len(vocab.ids))
	for token, id := range vocab.ids {
		entries = append(entries, trieEntry{token, id})
	}
	m := &wordPiece{vocabulary: vocab, trie: newTrie(entries), unk: unk, maxChars: limit}
	m.continues = m.trie.walk(prefix)
	return m, nil
}

func (v *vocabulary) unknown(ids []int32, unk, piece string) ([]int32, error) {
	id, ok := v.ids[unk]
	if !ok {
		return ids, failure(ErrToken, "encode: %q has no token, and unk_token %q is not in the vocabulary", piece, unk)
	}
	return append(ids, id), nil
}

func (m *wordPiece) encoder() encoder { return m }
func (m *wordPiece) release()         {}

func (m *wordPiece) append(ids []int32, piece string) ([]int32, error) {
	if len(piece) > m.maxChars && utf8.RuneCountInString(piece) > m.maxChars {
		return m.unknown(ids, m.unk, piece)
	}
	n := len(ids)
	node := int32(0)
	for at := 0; at < len(piece); node = m.continues {
		length, id := 0, int32(-1)
		if node >= 0 {
			length, id = m.trie.longest(node, piece[at:])
		}
		if id < 0 {
			return m.unknown(ids[:n], m.unk, piece)
		}
		ids = append(ids, id)
		at += length
	}
	return ids, nil
}

func (m *wordLevel) encoder() encoder { return m }
func (m *wordLevel) release()         {}

func (m *wordLevel) append(ids []int32, piece string) ([]int32, error) {
	if id, ok := m.ids[piece]; ok {
		return append(ids, id), nil
	}
	return m.unknown(ids, m.unk, piece)
}
