// Package expr has the expressions that sources of grammars compile to: sets of byte strings.
//
// Contract: expressions are immutable and may be shared; only a Rule's body is set after it has been called, so that a
// rule can refer to itself. The constructors simplify: what cannot match is None, what matches only the empty string is
// Empty. All errors of a source wrap ErrInvalid, ErrUnsupported or ErrLimit.
package expr

import (
	"iter"
	"math/bits"
)

// ByteSet is a set of bytes.
type ByteSet [4]uint64

func (s *ByteSet) Add(b byte)     { s[b>>6] |= 1 << (b & 63) }
func (s ByteSet) Has(b byte) bool { return s[b>>6]&(1<<(b&63)) != 0 }

func (s *ByteSet) addRange(lo, hi byte) {
	for b := int(lo); b <= int(hi); b++ {
		s.Add(byte(b))
	}
}

func (s ByteSet) And(o ByteSet) ByteSet {
	return ByteSet{s[0] & o[0], s[1] & o[1], s[2] & o[2], s[3] & o[3]}
}

func (s ByteSet) Or(o ByteSet) ByteSet {
	return ByteSet{s[0] | o[0], s[1] | o[1], s[2] | o[2], s[3] | o[3]}
}

// Without returns the bytes of s that are not in o.
func (s ByteSet) Without(o ByteSet) ByteSet {
	return ByteSet{s[0] &^ o[0], s[1] &^ o[1], s[2] &^ o[2], s[3] &^ o[3]}
}

// Len returns the number of bytes.
func (s ByteSet) Len() int {
	return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) + bits.OnesCount64(s[2]) + bits.OnesCount64(s[3])
}

// All yields the bytes in order.
func (s ByteSet) All() iter.Seq[byte] {
	return func(yield func(byte) bool) {
		for w, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(byte(w*64 + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

func (s ByteSet) empty() bool { return s == ByteSet{} }

// AddRange adds the bytes from lo to hi.
func (s *ByteSet) AddRange(lo, hi byte) { s.addRange(lo, hi) }

func ByteRange(lo, hi byte) (s ByteSet) {
	s.addRange(lo, hi)
	return s
}

// Expr is a set of byte strings. Exprs are immutable and may be shared: the compiler emits one node for an expr that
// occurs twice before the same continuation.
type Expr struct {
	Op       Op
	Set      ByteSet // OpSet: one byte of this set
	Text     string  // OpText
	Subs     []*Expr // OpSeq, OpAlt; OpRepeat has one
	Min, Max int     // OpRepeat; max < 0: unbounded. OpCompared: Min is the fewest items
	Rule     *Rule   // OpCall
	Graph    *Graph  // OpGraph, OpLexeme
	Lazy     bool    // OpLexeme: ends where it first can
	Tokens   *Tokens // OpToken: one token of these, whatever its text is
}

type Op uint8

const (
	OpSeq Op = iota // without subs: the empty string
	OpAlt           // without subs: the empty set
	OpSet
	OpText
	OpRepeat
	OpCall
	OpGraph
	OpToken
	// OpLexeme is a lexeme: among the lexemes that may stand somewhere, the longest match counts, and a lazy one ends
	// all others where it ends. The start state of its graph neither accepts nor has an edge to it.
	OpLexeme
	// OpSkip matches the empty text. Before it, any number of its sub may stand, a lexeme, but not where the whole text
	// begins.
	OpSkip
	// OpCompared matches its sub: a JSON array or object without its opening bracket, in which some items or names are
	// OpDistinct.
	OpCompared
	// OpDistinct matches its sub, a comma and an item or the name of a property, if that differs from all before it in the
	// innermost OpCompared.
	OpDistinct
)

// Graph is a deterministic automaton over bytes. State 0 is the start; every state can reach an accepting one.
type Graph struct{ States []GraphState }

// GraphState is a state of a Graph. The sets of its edges are disjoint.
type GraphState struct {
	Accept bool
	Edges  []GraphEdge
	Calls  []GraphCall
}

// GraphCall leads to a state after the text of a rule, which has no empty text and calls no rules.
type GraphCall struct {
	Rule *Rule
	To   int32
}

// GraphEdge leads to a state on the bytes of a set.
type GraphEdge struct {
	Set ByteSet
	To  int32
}

// Rule is a named expr. It may refer to itself.
type Rule struct {
	Name string
	Body *Expr
}

var (
	Empty = &Expr{Op: OpSeq}
	None  = &Expr{Op: OpAlt}
)

func (e *Expr) None() bool { return e.Op == OpAlt && len(e.Subs) == 0 }

func Set(s ByteSet) *Expr {
	if s.empty() {
		return None
	}
	return &Expr{Op: OpSet, Set: s}
}

func Text(s string) *Expr {
	if s == "" {
		return Empty
	}
	return &Expr{Op: OpText, Text: s}
}

// Run matches the texts of a graph.
func Run(g *Graph) *Expr {
	if len(g.States) == 0 {
		return None
	}
	return &Expr{Op: OpGraph, Graph: g}
}

func Call(r *Rule) *Expr { return &Expr{Op: OpCall, Rule: r} }

func Seq(parts ...*Expr) *Expr {
	kept := make([]*Expr, 0, len(parts))
	for _, p := range parts {
		if p.None() {
			return None
		}
		if p != Empty {
			kept = append(kept, p)
		}
	}
	switch len(kept) {
	case 0:
		return Empty
	case 1:
		return kept[0]
	}
	return &Expr{Op: OpSeq, Subs: kept}
}

func Alt(parts ...*Expr) *Expr {
	kept := make([]*Expr, 0, len(parts))
	for _, p := range parts {
		if !p.None() {
			kept = append(kept, p)
		}
	}
	switch len(kept) {
	case 0:
		return None
	case 1:
		return kept[0]
	}
	return &Expr{Op: OpAlt, Subs: kept}
}

func Opt(e *Expr) *Expr { return Alt(e, Empty) }

// Repeat repeats e from least to most times; most < 0: unbounded.
func Repeat(e *Expr, least, most int) *Expr {
	switch {
	case most == 0, e.None() && least == 0:
		return Empty
	case e.None():
		return None
	case least == 1 && most == 1:
		return e
	case least == 0 && most == 1:
		return Opt(e)
	}
	return &Expr{Op: OpRepeat, Subs: []*Expr{e}, Min: least, Max: most}
}

// Compared matches what follows the opening bracket of a JSON array or object, of which some parts are Distinct. It has
// no fewer than least items.
func Compared(e *Expr, least int) *Expr { return mark(OpCompared, e, least) }

// Distinct matches a comma and an item, or the name of a property, that differs from all before it.
func Distinct(e *Expr) *Expr { return mark(OpDistinct, e, 0) }

func mark(op Op, e *Expr, least int) *Expr {
	if e.None() {
		return None
	}
	return &Expr{Op: op, Subs: []*Expr{e}, Min: least}
}

// LeftRecursive returns the body of a rule with these alternatives. Those that begin with the rule itself become a
// repetition: a = a x | y is y x*.
func LeftRecursive(r *Rule, alts []*Expr) *Expr {
	var bases, tails []*Expr
	for _, e := range alts {
		head := e
		if e.Op == OpSeq && len(e.Subs) > 0 {
			head = e.Subs[0]
		}
		switch {
		case head.Op != OpCall || head.Rule != r:
			bases = append(bases, e)
		case e.Op == OpSeq:
			tails = append(tails, Seq(e.Subs[1:]...))
		}
	}
	return Seq(Alt(bases...), Repeat(Alt(tails...), 0, -1))
}
