package expr

// branch is a node of the trie of Words: the texts that begin with key. Indices of 0 stand for none, since no branch
// leads to the root.
type branch struct {
	key         byte
	end         bool  // a word ends here
	first, last int32 // children, in order of appearance
	next        int32 // sibling
}

// trie is all branches, each behind its parent.
type trie []branch

// child returns the child of at with a key. It adds one if there is none.
func (t *trie) child(at int32, key byte) int32 {
	all := *t
	for i := all[at].first; i != 0; i = all[i].next {
		if all[i].key == key {
			return i
		}
	}
	made := int32(len(all))
	if last := all[at].last; last != 0 {
		all[last].next = made
	} else {
		all[at].first = made
	}
	all[at].last = made
	*t = append(all, branch{key: key})
	return made
}

// splits reports whether words branch or end at i.
func (t trie) splits(i int32) bool { return i == 0 || t[i].end || t[i].first != t[i].last }

// Words matches one of words. It builds a trie, so that a state has few places even with many words.
func Words(words []string) *Expr {
	switch len(words) {
	case 0:
		return None
	case 1:
		return Text(words[0])
	}
	size := 1
	for _, w := range words {
		size += len(w)
	}
	t := make(trie, 1, size)
	for _, w := range words {
		at := int32(0)
		for i := range len(w) {
			at = t.child(at, w[i])
		}
		t[at].end = true
	}
	// Branches where words split become exprs; a chain between them becomes one text.
	made := make([]*Expr, len(t))
	var alts []*Expr
	var text []byte
	for i := int32(len(t) - 1); i >= 0; i-- {
		if !t.splits(i) {
			continue
		}
		alts = alts[:0]
		for kid := t[i].first; kid != 0; kid = t[kid].next {
			text = append(text[:0], t[kid].key)
			at := kid
			for !t.splits(at) {
				at = t[at].first
				text = append(text, t[at].key)
			}
			if rest := made[at]; rest.Op == OpText {
				alts = append(alts, Text(string(text)+rest.Text))
			} else {
				alts = append(alts, Seq(Text(string(text)), rest))
			}
		}
		if t[i].end {
			alts = append(alts, Empty)
		}
		made[i] = Alt(alts...)
	}
	return made[0]
}
