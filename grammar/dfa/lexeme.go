package dfa

import "github.com/ingotml/ingot/grammar/expr"

// Nullable reports whether d accepts the empty text.
func (d *DFA) Nullable() bool { return !d.Empty() && d.accept[0] }

// Lexeme matches the texts of d but the empty one, as a lexeme of their bytes in UTF-8. A lazy one ends where it first
// can.
func (d *DFA) Lexeme(lazy bool) *expr.Expr {
	if d.Empty() {
		return expr.None
	}
	// State 0 is a copy of the start that nothing leads to; state s is s+1.
	out := &expr.Graph{States: make([]expr.GraphState, len(d.accept)+1)}
	g := &grapher{out: out, inner: map[string]int32{}}
	for i := range len(d.accept) + 1 {
		s := int32(max(i-1, 0))
		if i > 0 && d.accept[s] {
			out.States[i].Accept = true
			if lazy {
				continue
			}
		}
		var ways []way
		for c, to := range d.row(s) {
			if to == dead {
				continue
			}
			for _, seq := range expr.Sequences(d.classes[c]) {
				ways = append(ways, way{seq, to + 1})
			}
		}
		if len(ways) > 0 {
			edges := g.edges(ways)
			out.States[i].Edges = edges
		}
	}
	if len(out.States[0].Edges) == 0 {
		return expr.None
	}
	return &expr.Expr{Op: expr.OpLexeme, Graph: out, Lazy: lazy}
}

// Texts matches the texts of d as they are, in UTF-8.
func (d *DFA) Texts() *expr.Expr {
	if d.Empty() {
		return expr.None
	}
	out := &expr.Graph{States: make([]expr.GraphState, len(d.accept))}
	g := &grapher{out: out, inner: map[string]int32{}}
	for s, ok := range d.accept {
		var ways []way
		for c, to := range d.row(int32(s)) {
			if to == dead {
				continue
			}
			for _, seq := range expr.Sequences(d.classes[c]) {
				ways = append(ways, way{seq, to})
			}
		}
		out.States[s].Accept = ok
		if len(ways) > 0 {
			edges := g.edges(ways)
			out.States[s].Edges = edges
		}
	}
	return expr.Run(out)
}
