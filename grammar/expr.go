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

// An expr is a set of byte strings. Exprs are immutable and may be shared: the compiler makes one place in the program of an
// expr that is met twice before the same rest.
type expr struct {
	op       exprOp
	set      byteSet // exprSet: one byte of these
	text     string  // exprText
	subs     []*expr // exprSeq, exprAlt; exprRepeat has one
	min, max int     // exprRepeat; max < 0: no end
	rule     *rule   // exprCall
}

type exprOp uint8

const (
	exprSeq exprOp = iota // no parts: the empty string
	exprAlt               // no parts: no string at all
	exprSet
	exprText
	exprRepeat
	exprCall
)

// rule is an expr with a name, which may call itself.
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

// repeatExpr is e so many times; max < 0 is without end.
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

// branch is a place in the trie of wordsExpr.
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

// wordsExpr is one of words, which may be many: a trie, so that few places in the program are possible at once.
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
	// Places where words part or end are made; those between them are one text. Children come after their parents.
	parts := func(i int32) bool { return i == 0 || trie[i].end || len(trie[i].kids) != 1 }
	made := map[int32]*expr{}
	for i := int32(len(trie) - 1); i >= 0; i-- {
		if !parts(i) {
			continue
		}
		b := trie[i]
		var ways []*expr
		for k, kid := range b.kids {
			text := []byte{b.keys[k]}
			for !parts(kid) {
				text = append(text, trie[kid].keys[0])
				kid = trie[kid].kids[0]
			}
			if rest := made[kid]; rest.op == exprText {
				ways = append(ways, textExpr(string(text)+rest.text))
			} else {
				ways = append(ways, seqExpr(textExpr(string(text)), rest))
			}
		}
		if b.end {
			ways = append(ways, emptyExpr)
		}
		made[i] = altExpr(ways...)
	}
	return made[0]
}
