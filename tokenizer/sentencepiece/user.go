package sentencepiece

import "github.com/ingotml/ingot/tokenizer/trie"

// UserTrie returns a trie of the user-defined pieces, which are never split, or nil if there are none.
func UserTrie(m *Model) *trie.Trie {
	var entries []trie.Entry
	for _, p := range m.Marked {
		if p.Kind == UserDefined {
			entries = append(entries, trie.Entry{Text: p.Text, ID: p.ID})
		}
	}
	if entries == nil {
		return nil
	}
	return trie.New(entries)
}
