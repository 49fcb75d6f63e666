package encode

import (
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/fault"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
	"github.com/ingotml/ingot/tokenizer/trie"
)

// wordPiece takes the longest token that is a prefix of a piece, then the longest continuation token, and so on
// (models/wordpiece of the reference).
type wordPiece struct {
	*vocabulary
	trie      *trie.Trie
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
func readWords(r *jsonfile.Reader, kind string) (Model, error) {
	c := jsonfile.Component{Node: &jsonfile.Node{Kind: jsonfile.ObjectNode}, Part: "model", Name: kind}
	var vocab *vocabulary
	err := r.Object(func(key []byte) error {
		switch name := string(key); name {
		case "vocab":
			return r.Within(name, func() (err error) {
				vocab, err = readVocab(r)
				return err
			})
		case "unk_token", "continuing_subword_prefix", "max_input_chars_per_word":
			return r.Within(name, func() error {
				v, err := r.Value()
				c.Keys = append(c.Keys, name)
				c.List = append(c.List, v)
				return err
			})
		}
		return r.Skip()
	})
	if err != nil {
		return nil, err
	}
	if vocab == nil {
		return nil, c.Invalid("has no vocab")
	}
	unk, err := c.Str("unk_token")
	if err != nil {
		return nil, err
	}
	if kind == "WordLevel" {
		return &wordLevel{vocab, unk}, nil
	}
	prefix, err := c.Str("continuing_subword_prefix")
	if err != nil {
		return nil, err
	}
	if _, err := c.Field("max_input_chars_per_word", jsonfile.NumberNode); err != nil {
		return nil, err
	}
	limit, err := c.Count("max_input_chars_per_word", 0, jsonfile.MaxID)
	if err != nil {
		return nil, err
	}
	entries := make([]trie.Entry, 0, vocab.Size())
	vocab.all(func(token string, id int32) { entries = append(entries, trie.Entry{Text: token, ID: id}) })
	m := &wordPiece{vocabulary: vocab, trie: trie.New(entries), unk: unk, maxChars: limit}
	m.continues = m.trie.Walk(prefix)
	return m, nil
}

func (v *vocabulary) unknown(ids []int32, unk, piece string) ([]int32, error) {
	id, ok := v.ID(unk)
	if !ok {
		return ids, fault.Errorf(fault.ErrToken, "encode: %q has no token, and unk_token %q is not in the vocabulary", piece,
			unk)
	}
	return append(ids, id), nil
}

func (m *wordPiece) Encoder() encoder { return m }
func (m *wordPiece) Release()         {}

func (m *wordPiece) Append(w *work.Meter, ids []int32, piece string) ([]int32, error) {
	if len(piece) > m.maxChars && utf8.RuneCountInString(piece) > m.maxChars {
		return m.unknown(ids, m.unk, piece)
	}
	n := len(ids)
	node := int32(0)
	for at := 0; at < len(piece); node = m.continues {
		length, id := 0, int32(-1)
		if node >= 0 {
			read := 0
			length, id, read = m.trie.Longest(node, piece[at:])
			if err := w.Spend(symbolWork + 2*read); err != nil {
				return ids, err
			}
		}
		if id < 0 {
			return m.unknown(ids[:n], m.unk, piece)
		}
		ids = append(ids, id)
		at += length
	}
	return ids, nil
}

func (m *wordLevel) Encoder() encoder { return m }
func (m *wordLevel) Release()         {}

func (m *wordLevel) Append(_ *work.Meter, ids []int32, piece string) ([]int32, error) {
	if id, ok := m.ID(piece); ok {
		return append(ids, id), nil
	}
	return m.unknown(ids, m.unk, piece)
}
