package program

import (
	"fmt"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/internal/limits"
)

// builder adds nodes to a program. After an error it adds none.
type builder struct {
	nodes    []Node
	alts     []int32
	cases    []int32
	byteIDs  [256]int32 // of the sets of one byte, plus 1
	setIDs   map[expr.ByteSet]int32
	sets     []expr.ByteSet
	tokens   []*expr.Tokens
	tokenIDs map[string]int32
	lexes    bool
	made     table
	err      error
}

func (b *builder) fail(err error) int32 {
	if b.err == nil {
		b.err = err
	}
	return 0
}

func (b *builder) add(n Node) int32 {
	if len(b.nodes)+len(b.cases) >= limits.GrammarPlaces {
		return b.fail(expr.Errorf(expr.ErrLimit, "the grammar compiles to more than %d places", limits.GrammarPlaces))
	}
	b.nodes = append(b.nodes, n)
	return int32(len(b.nodes) - 1)
}

// addAlt adds a node with alternatives.
func (b *builder) addAlt(alts ...int32) int32 {
	at := b.add(Node{Op: Alt})
	b.setAlts(at, alts...)
	return at
}

// setAlts makes a node continue at these alternatives.
func (b *builder) setAlts(at int32, alts ...int32) {
	if b.err == nil {
		b.nodes[at] = Node{Op: Alt, Arg: int32(len(b.alts)), Min: int32(len(alts))}
		b.alts = append(b.alts, alts...)
	}
}

// shared returns a node equal to n.
func (b *builder) shared(n Node) int32 {
	at := b.made.find(b.nodes, &n)
	if at != 0 {
		return at
	}
	if at = b.add(n); b.err == nil {
		b.made.add(b.nodes, at)
	}
	return at
}

func (b *builder) setID(s expr.ByteSet) int32 {
	if s.Len() == 1 {
		for only := range s.All() {
			return b.byteID(only)
		}
	}
	id, ok := b.setIDs[s]
	if !ok {
		id = b.addSet(s)
		b.setIDs[s] = id
	}
	return id
}

// byteID returns the index of the set of one byte.
func (b *builder) byteID(only byte) int32 {
	if b.byteIDs[only] == 0 {
		b.byteIDs[only] = b.addSet(expr.ByteRange(only, only)) + 1
	}
	return b.byteIDs[only] - 1
}

func (b *builder) addSet(s expr.ByteSet) int32 {
	b.sets = append(b.sets, s)
	return int32(len(b.sets) - 1)
}

// setSwitch makes a node take the bytes of edges. Their states are the nodes from first on.
func (b *builder) setSwitch(at int32, edges []expr.GraphEdge, first int32) {
	switch {
	case b.err != nil:
	case len(edges) == 1:
		b.nodes[at] = Node{Op: Byte, Set: b.setID(edges[0].Set), Next: first + edges[0].To}
	case len(edges) > 1:
		n := Node{Op: Switch, Arg: int32(len(b.alts)), Min: int32(len(edges)), Max: int32(len(b.cases))}
		var all expr.ByteSet
		for _, e := range edges {
			all = all.Or(e.Set)
			b.alts, b.cases = append(b.alts, first+e.To), append(b.cases, b.setID(e.Set))
		}
		n.Set = b.setID(all)
		b.nodes[at] = n
	}
}

// token returns the node of a token terminal.
func (b *builder) token(t *expr.Tokens, next int32) int32 {
	key := fmt.Sprint(*t)
	id, ok := b.tokenIDs[key]
	if !ok {
		id = int32(len(b.tokens))
		b.tokenIDs[key] = id
		b.tokens = append(b.tokens, t)
	}
	return b.shared(Node{Op: Token, Set: b.setID(expr.ByteSet{}), Arg: id, Next: next})
}

// A lexer splits a text into the longest lexemes before a parser sees them. Here both are one automaton, since the
// lexemes of all ways through the grammar end at the same bytes: where a byte continues any lexeme, the ways that would
// end theirs before it are dropped. A lazy lexeme ends where it first can, and drops all that go on.

// lexeme returns the node of a lexeme. Its bytes but the first are marked: they continue it.
func (b *builder) lexeme(e *expr.Expr, next int32) int32 {
	b.lexes = true
	if e.Lazy {
		next = b.shared(Node{Op: Lazy, Next: next})
	}
	first := int32(len(b.nodes))
	for range e.Graph.States {
		b.add(Node{Op: Alt})
	}
	for i, s := range e.Graph.States {
		if b.err != nil {
			return 0
		}
		inside := int32(min(i, 1))
		alts := make([]int32, 0, len(s.Edges)+1)
		for _, edge := range s.Edges {
			alts = append(alts, b.shared(Node{Op: Byte, Set: b.setID(edge.Set), Next: first + edge.To, Arg: inside}))
		}
		if s.Accept {
			alts = append(alts, next)
		}
		if b.err == nil {
			b.setAlts(first+int32(i), alts...)
		}
	}
	return first
}
