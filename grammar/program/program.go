// Package program has the program that a grammar's expression compiles to: instructions over bytes, with calls for
// recursion, counted repetitions, and tokens by their names.
//
// Contract: a program is immutable. No repetition runs a body that may be empty, and no rule is left-recursive, so
// every run reaches a byte, a token or the end in finitely many steps. Its size is bounded by limits.GrammarPlaces.
package program

import "github.com/ingotml/ingot/grammar/expr"

// Node is an instruction of a program.
type Node struct {
	Op   Op
	Set  int32 // Byte, Switch: index of the set of allowed bytes; Token: of an empty set
	Next int32 // Byte, Token, Repeat: the continuation; Call: where the called rule returns to
	Arg  int32 // Call, Repeat, Skip: start of the rule or the body; Token: index of the set of tokens;
	// Byte: 1 within a lexeme; Alt, Switch: index of the first alternative
	// Repeat; max < 0: unbounded. Call: min is 1 for a character, max MarkArray or MarkItem; Alt: min is the
	// number of alternatives, max of those that take a byte or a token, which are first; Switch: min is their number,
	// max the index of the first one's set
	Min, Max int32
}

// Op is the kind of an instruction.
type Op uint8

const (
	End      Op = iota // end of a rule or a repeated body; only node 0
	Byte               // consumes a byte
	Switch             // consumes a byte, which decides the alternative: their sets are disjoint
	Alt                // continues at any of its alternatives
	Call               // runs a rule, then continues at next
	Repeat             // runs a body min to max times, then continues at next
	Token              // consumes a token between two tokens, whatever its bytes are
	Lazy               // the end of a lazy lexeme, continues at next
	Skip               // continues at next or, within the text, at arg
	Distinct           // continues at next if the item before it repeats none
)

// Takes reports whether a node consumes a byte or a token.
func (n *Node) Takes() bool { return n.Op == Byte || n.Op == Switch || n.Op == Token }

// Program is a compiled grammar.
type Program struct {
	Nodes    []Node
	alts     []int32 // of all nodes
	cases    []int32 // indices of the sets of all alternatives of a Switch
	Sets     []expr.ByteSet
	Tokens   []*expr.Tokens
	Lexes    bool  // it has lexemes
	Skips    int32 // what may be skipped where the text may end and may go on; 0: nothing
	Start    int32
	Order    []int32     // all that the start leads to, see recursion.Order
	Live     []bool      // by node: a finite string leads to the end
	Unique   *Uniqueness // nil without items that must differ
	Required int         // the most of them that an array needs
}

// AltsOf returns the alternatives of a Alt or a Switch.
func (p *Program) AltsOf(n *Node) []int32 { return p.alts[n.Arg : n.Arg+n.Min] }

// CasesOf returns the indices of the sets of a Switch, by alternative.
func (p *Program) CasesOf(n *Node) []int32 { return p.cases[n.Max : n.Max+n.Min] }

// Size returns the number of its places.
func (p *Program) Size() int { return len(p.Nodes) + len(p.cases) }

// After returns where a node that takes b continues.
func (p *Program) After(n *Node, b byte) int32 {
	if n.Op == Switch {
		for k, set := range p.CasesOf(n) {
			if p.Sets[set].Has(b) {
				return p.AltsOf(n)[k]
			}
		}
	}
	return n.Next
}

// Marks of the frames of calls, and of their nodes.
const (
	MarkArray = 1 // an array or an object that is compared; what is called begins behind its bracket
	MarkItem  = 2 // a comma and an item or a name, which returns to a Distinct
)

// Uniqueness is what a program with such items needs to know of its nodes.
type Uniqueness struct {
	Endless []bool // infinitely many texts lead to the end of the rule
	Through []bool // some text without an item of finitely many texts does
}
