package sentencepiece

import "github.com/ingotml/ingot/tokenizer/trie"

// UserTrie returns a trie of the user-defined pieces, which are never split, or nil if there are none.
func UserTrie(m *Model) *trie.Trie {
	var entries []trie.Entry
	for i, p := range m.Pieces {
		if p.Kind == UserDefined {
			entries = append(entries, trie.Entry{Text: p.Text, ID: int32(i)})
		}
	}
	if entries == nil {
		return nil
	}
	return trie.New(entries)
}
