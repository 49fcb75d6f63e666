package vocabulary

import (
	"bytes"

	"github.com/ingotml/ingot/grammar/items"
	"github.com/ingotml/ingot/grammar/trie"
)

// Crossing returns the tokens after which a text may have a repeated item, or leave only such.
func (v *Vocabulary) Crossing(t *items.Text) *trie.Trie {
	if t.Matches() {
		return &v.All
	}
	x := &v.crossing
	x.once.Do(func() {
		of := func(wanted ...string) trie.Trie {
			var order []int32
			for i := range v.All.Nodes {
				if n := &v.All.Nodes[i]; n.Token != trie.None && inOrder(v.tokens[v.All.First(n)], wanted) {
					order = append(order, v.All.Between(int32(i), int32(i)+1)...)
				}
			}
			return trie.New(v.tokens, order)
		}
		x.opened, x.quoted, x.commaed = of("[{", ","), of(`"`, ","), of(",")
	})
	switch {
	case t == nil:
		return &x.opened
	case t.InString():
		return &x.quoted
	}
	return &x.commaed
}

// inOrder reports whether text has one byte of each, one after the other.
func inOrder(text []byte, wanted []string) bool {
	for _, set := range wanted {
		i := bytes.IndexAny(text, set)
		if i < 0 {
			return false
		}
		text = text[i+1:]
	}
	return true
}
