package dfa

import "github.com/ingotml/ingot/grammar/expr"

// Node is a regular expression over characters.
type Node struct {
	op       op
	set      expr.RuneSet
	subs     []Node
	min, max int // of a repetition; max < 0: unbounded
	negated  bool
	machine  *DFA
}

type op uint8

const (
	opCat op = iota // without subs: the empty text
	opAlt           // without subs: nothing
	opSet
	opRepeat
	opBegin
	opEnd
	opWord // a word boundary, or no word boundary
	opLook // what follows matches, or does not
	opMachine
)

// Set is one character of s.
func Set(s expr.RuneSet) Node { return Node{op: opSet, set: s} }

// Literal is the text s.
func Literal(s string) Node {
	n := Node{op: opCat}
	for _, r := range s {
		n.subs = append(n.subs, Set(expr.RuneSet{r, r}))
	}
	return n
}

// Cat is one part after the other.
func Cat(parts ...Node) Node { return Node{op: opCat, subs: parts} }

// Alt is any of the parts.
func Alt(parts ...Node) Node { return Node{op: opAlt, subs: parts} }

// Repeat is n, least to most times; most < 0: unbounded.
func Repeat(n Node, least, most int) Node {
	return Node{op: opRepeat, subs: []Node{n}, min: least, max: most}
}

// Everything is any text.
func Everything() Node { return Repeat(Set(expr.EveryRune), 0, -1) }

// Begin and End are the empty text at the beginning and at the end of the whole text.
func Begin() Node { return Node{op: opBegin} }
func End() Node   { return Node{op: opEnd} }

// WordBoundary is the empty text between a character of [A-Za-z0-9_] and one outside or an end; negated: elsewhere.
func WordBoundary(negated bool) Node { return Node{op: opWord, negated: negated} }

// Look is the empty text before a match of n, or, negated, where n does not match.
func Look(n Node, negated bool) Node { return Node{op: opLook, subs: []Node{n}, negated: negated} }

func (n Node) has(what op) bool {
	if n.op == what {
		return true
	}
	for _, s := range n.subs {
		if s.has(what) {
			return true
		}
	}
	return false
}

// onlyAsserts reports whether n matches the empty text only.
func (n Node) onlyAsserts() bool {
	switch n.op {
	case opBegin, opEnd, opWord, opLook:
		return true
	case opCat, opAlt:
		for _, s := range n.subs {
			if !s.onlyAsserts() {
				return false
			}
		}
		return true
	}
	return false
}

// resolveLooks replaces look-ahead by intersections. parts is a sequence that reaches to the end of the text; atStart
// tells whether it begins at the beginning, short whether long texts may be left out.
func resolveLooks(parts []Node, atStart, short bool) (Node, error) {
	for i, p := range parts {
		if !p.has(opLook) {
			continue
		}
		head, tail := parts[:i:i], parts[i+1:]
		first := atStart && Cat(head...).onlyAsserts()
		switch p.op {
		case opLook:
			rest, err := resolveLooks(tail, first, short)
			if err != nil {
				return Node{}, err
			}
			behind, err := resolveLooks([]Node{p.subs[0], Everything()}, first, short && !p.negated)
			if err != nil {
				return Node{}, err
			}
			a, err := compile(rest, first)
			if err != nil {
				return Node{}, err
			}
			b, err := compile(behind, first)
			if err != nil {
				return Node{}, err
			}
			if p.negated {
				a, err = Minus(a, b)
			} else if short {
				a, err = IntersectShort(a, b)
			} else {
				a, err = Intersect(a, b)
			}
			return Cat(append(head, Node{op: opMachine, machine: a})...), err
		case opCat:
			return resolveLooks(append(append(head, p.subs...), tail...), atStart, short)
		case opAlt:
			var alts []Node
			for _, s := range p.subs {
				one, err := resolveLooks(append([]Node{s}, tail...), first, short)
				if err != nil {
					return Node{}, err
				}
				alts = append(alts, one)
			}
			return Cat(append(head, Alt(alts...))...), nil
		case opRepeat:
			if p.max >= 0 && p.max <= 4 { // few enough to write out
				var alts []Node
				for n := p.min; n <= p.max; n++ {
					var copies []Node
					for range n {
						copies = append(copies, p.subs[0])
					}
					alts = append(alts, Cat(copies...))
				}
				return resolveLooks(append(append(head, Alt(alts...)), tail...), atStart, short)
			}
		}
		return Node{}, expr.Errorf(expr.ErrUnsupported, "look-ahead inside a repetition")
	}
	return Cat(parts...), nil
}
