package grammar

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

// wordsExpr is one of words, which may be many: a trie, so that few places in the program are possible at once.
func wordsExpr(words []string) *expr {
	type branch struct {
		end  bool
		kids map[byte]int
		keys []byte // in order of appearance
	}
	trie := []branch{{kids: map[byte]int{}}}
	for _, w := range words {
		at := 0
		for i := range len(w) {
			next, ok := trie[at].kids[w[i]]
			if !ok {
				next = len(trie)
				trie[at].kids[w[i]] = next
				trie[at].keys = append(trie[at].keys, w[i])
				trie = append(trie, branch{kids: map[byte]int{}})
			}
			at = next
		}
		trie[at].end = true
	}
	made := make([]*expr, len(trie))
	for i := len(trie) - 1; i >= 0; i-- { // children come after their parents
		b := trie[i]
		var parts []*expr
		for _, k := range b.keys {
			kid := made[b.kids[k]]
			head := string([]byte{k})
			if kid.op == exprText {
				parts = append(parts, textExpr(head+kid.text))
			} else {
				parts = append(parts, seqExpr(textExpr(head), kid))
			}
		}
		if b.end {
			parts = append(parts, emptyExpr)
		}
		made[i] = altExpr(parts...)
	}
	if len(words) == 0 {
		return noExpr
	}
	return made[0]
}
