package syntax

import "github.com/ingotml/ingot/grammar/expr"

// Kind is the kind of a symbol. Those from Own on are of one language.
type Kind uint8

// The kinds of all languages.
const (
	End Kind = iota
	Operator
	Own
)

// Symbol is a lexical element of a source.
type Symbol struct {
	Kind Kind
	Text string // as written
	At   int    // offset in the source
}

// Op says what a node is. Those from OwnOp on are of one language.
type Op uint8

// The nodes of all languages.
const (
	Alt Op = iota
	Seq
	Repeat
	Name
	OwnOp
)

// Node is an expression of a rule.
type Node struct {
	Op       Op
	At       int // offset in the source
	Text     string
	Subs     []*Node
	Min, Max int        // of Repeat; Max < 0: unbounded
	Expr     *expr.Expr // of nodes whose texts the language knows at once
}

// Texts returns the texts of n. leaf returns those of a node without alternatives, sequences and repetitions.
func (n *Node) Texts(leaf func(*Node) *expr.Expr) *expr.Expr {
	switch n.Op {
	case Alt:
		return expr.Alt(n.parts(leaf)...)
	case Seq:
		return expr.Seq(n.parts(leaf)...)
	case Repeat:
		return expr.Repeat(n.Subs[0].Texts(leaf), n.Min, n.Max)
	}
	return leaf(n)
}

// Body is Texts for the body of a rule: alternatives that begin with the rule itself become a repetition.
func (n *Node) Body(r *expr.Rule, leaf func(*Node) *expr.Expr) *expr.Expr {
	alts := n
	if n.Op != Alt {
		alts = &Node{Op: Alt, Subs: []*Node{n}}
	}
	return expr.LeftRecursive(r, alts.parts(leaf))
}

func (n *Node) parts(leaf func(*Node) *expr.Expr) []*expr.Expr {
	parts := make([]*expr.Expr, len(n.Subs))
	for i, s := range n.Subs {
		parts[i] = s.Texts(leaf)
	}
	return parts
}
