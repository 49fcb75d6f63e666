package dfa

import (
	"maps"
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
)

// trie is the words of a list by their characters.
type trie struct {
	nodes   []trieNode
	classes []expr.RuneSet // each character of a word, then all others
	class   map[rune]int
}

type trieNode struct {
	end   bool
	depth int
	kids  []trieKid
}

// trieKid is the node after a character.
type trieKid struct {
	char rune
	to   int
}

// kid returns the node after a character, or false.
func (n *trieNode) kid(r rune) (int, bool) {
	for _, k := range n.kids {
		if k.char == r {
			return k.to, true
		}
	}
	return 0, false
}

func newTrie(words []string) (*trie, error) {
	t := &trie{nodes: []trieNode{{}}, class: map[rune]int{}}
	seen := map[rune]bool{}
	for _, w := range words {
		at := 0
		for _, r := range w {
			seen[r] = true
			next, ok := t.nodes[at].kid(r)
			if !ok {
				if next = len(t.nodes); next > maxStates {
					return nil, errLimit()
				}
				t.nodes[at].kids = append(t.nodes[at].kids, trieKid{r, next})
				t.nodes = append(t.nodes, trieNode{depth: t.nodes[at].depth + 1})
			}
			at = next
		}
		t.nodes[at].end = true
	}
	var all []rune
	for i, r := range slices.Sorted(maps.Keys(seen)) {
		t.class[r] = i
		t.classes = append(t.classes, expr.RuneSet{r, r})
		all = append(all, r, r)
	}
	t.classes = append(t.classes, expr.RuneSetOf(all).Not())
	return t, nil
}

// automaton returns the automaton with the trie's nodes as states, then more. Without a child, it continues at other.
func (t *trie) automaton(more int, other int32, accept func(n trieNode) bool) *DFA {
	k := len(t.classes)
	d := &DFA{classes: t.classes, accept: make([]bool, len(t.nodes)+more), next: make([]int32, (len(t.nodes)+more)*k)}
	for i := range d.next {
		d.next[i] = other
	}
	for s, n := range t.nodes {
		d.accept[s] = accept(n)
		for _, kid := range n.kids {
			d.next[s*k+t.class[kid.char]] = int32(kid.to)
		}
	}
	return d
}

// Words accepts these texts.
func Words(words []string) (*DFA, error) {
	t, err := newTrie(words)
	if err != nil || len(words) == 0 {
		return &DFA{classes: []expr.RuneSet{expr.EveryRune}}, err
	}
	return t.automaton(0, dead, func(n trieNode) bool { return n.end }), nil
}

// NotWords accepts all other texts, except those that have their first depth characters in common with one of the
// words.
func NotWords(words []string, depth int) (*DFA, error) {
	short := make([]string, len(words))
	for i, w := range words {
		runes := []rune(w)
		short[i] = string(runes[:min(len(runes), depth)])
	}
	t, err := newTrie(short)
	if err != nil {
		return nil, err
	}
	free := int32(len(t.nodes))
	d := t.automaton(1, free, func(n trieNode) bool { return !n.end })
	d.accept[free] = true
	cut := false
	for s, n := range t.nodes {
		if n.depth == depth {
			cut = true
			for c := range d.classes {
				d.next[s*len(d.classes)+c] = dead
			}
		}
	}
	if !cut { // every state is reachable, and leads to free
		return d, nil
	}
	return d.trim(), nil
}
