package grammar

import "bytes"

// byteSet is a set of bytes.
type byteSet [4]uint64

func (s *byteSet) add(b byte)     { s[b>>6] |= 1 << (b & 63) }
func (s byteSet) has(b byte) bool { return s[b>>6]&(1<<(b&63)) != 0 }

func (s *byteSet) addRange(lo, hi byte) {
	for b := int(lo); b <= int(hi); b++ {
		s.add(byte(b))
	}
}

func (s byteSet) and(o byteSet) byteSet {
	return byteSet{s[0] & o[0], s[1] & o[1], s[2] & o[2], s[3] & o[3]}
}

func (s byteSet) or(o byteSet) byteSet {
	return byteSet{s[0] | o[0], s[1] | o[1], s[2] | o[2], s[3] | o[3]}
}

func (s byteSet) empty() bool { return s == byteSet{} }

func byteRange(lo, hi byte) (s byteSet) {
	s.addRange(lo, hi)
	return s
}

// expr is a set of byte strings. Exprs are immutable and may be shared: the compiler emits one node for an expr that
// occurs twice before the same continuation.
type expr struct {
	op       exprOp
	set      byteSet // exprSet: one byte of this set
	text     string  // exprText
	subs     []*expr // exprSeq, exprAlt; exprRepeat has one
	min, max int     // exprRepeat; max < 0: unbounded
	rule     *rule   // exprCall
}

type exprOp uint8

const (
	exprSeq exprOp = iota // without subs: the empty string
	exprAlt               // without subs: the empty set
	exprSet
	exprText
	exprRepeat
	exprCall
)

// rule is a named expr. It may refer to itself.
type rule struct {
	name string
	body *expr
}

var (
	emptyExpr = &expr{op: exprSeq}
	noExpr    = &expr{op: exprAlt}
)

func (e *expr) none() bool { return e.op == exprAlt && len(e.subs) == 0 }

func setExpr(s byteSet) *expr {
	if s.empty() {
		return noExpr
	}
	return &expr{op: exprSet, set: s}
}

func textExpr(s string) *expr {
	if s == "" {
		return emptyExpr
	}
	return &expr{op: exprText, text: s}
}

func callExpr(r *rule) *expr { return &expr{op: exprCall, rule: r} }

func seqExpr(parts ...*expr) *expr {
	kept := make([]*expr, 0, len(parts))
	for _, p := range parts {
		if p.none() {
			return noExpr
		}
		if p != emptyExpr {
			kept = append(kept, p)
		}
	}
	switch len(kept) {
	case 0:
		return emptyExpr
	case 1:
		return kept[0]
	}
	return &expr{op: exprSeq, subs: kept}
}

func altExpr(parts ...*expr) *expr {
	kept := make([]*expr, 0, len(parts))
	for _, p := range parts {
		if !p.none() {
			kept = append(kept, p)
		}
	}
	switch len(kept) {
	case 0:
		return noExpr
	case 1:
		return kept[0]
	}
	return &expr{op: exprAlt, subs: kept}
}

func optExpr(e *expr) *expr { return altExpr(e, emptyExpr) }

// repeatExpr repeats e from least to most times; most < 0: unbounded.
func repeatExpr(e *expr, least, most int) *expr {
	switch {
	case most == 0, e.none() && least == 0:
		return emptyExpr
	case e.none():
		return noExpr
	case least == 1 && most == 1:
		return e
	case least == 0 && most == 1:
		return optExpr(e)
	}
	return &expr{op: exprRepeat, subs: []*expr{e}, min: least, max: most}
}

// branch is a node of the trie of wordsExpr.
type branch struct {
	end  bool
	keys []byte // in order of appearance
	kids []int32
}

func (b *branch) kid(key byte) (int32, bool) {
	if i := bytes.IndexByte(b.keys, key); i >= 0 {
		return b.kids[i], true
	}
	return 0, false
}

// wordsExpr matches one of words. It builds a trie, so that a state has few places even with many words.
func wordsExpr(words []string) *expr {
	if len(words) == 0 {
		return noExpr
	}
	trie := []branch{{}}
	for _, w := range words {
		at := int32(0)
		for i := range len(w) {
			next, ok := trie[at].kid(w[i])
			if !ok {
				next = int32(len(trie))
				b := &trie[at]
				b.keys, b.kids = append(b.keys, w[i]), append(b.kids, next)
				trie = append(trie, branch{})
			}
			at = next
		}
		trie[at].end = true
	}
	// Nodes where words branch or end become exprs; a chain between them becomes one text. Children come after their
	// parents.
	isBranch := func(i int32) bool { return i == 0 || trie[i].end || len(trie[i].kids) != 1 }
	made := map[int32]*expr{}
	for i := int32(len(trie) - 1); i >= 0; i-- {
		if !isBranch(i) {
			continue
		}
		b := trie[i]
		var alts []*expr
		for k, kid := range b.kids {
			text := []byte{b.keys[k]}
			for !isBranch(kid) {
				text = append(text, trie[kid].keys[0])
				kid = trie[kid].kids[0]
			}
			if rest := made[kid]; rest.op == exprText {
				alts = append(alts, textExpr(string(text)+rest.text))
			} else {
				alts = append(alts, seqExpr(textExpr(string(text)), rest))
			}
		}
		if b.end {
			alts = append(alts, emptyExpr)
		}
		made[i] = altExpr(alts...)
	}
	return made[0]
}
