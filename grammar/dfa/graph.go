package dfa

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/jsontext"
)

// Expr matches the texts of d as the inside of a JSON string: characters are unescaped, or have the escape that they
// require.
func (d *DFA) Expr() *expr.Expr {
	if d.Empty() {
		return expr.None
	}
	// Characters of one plain byte are edges. All others are calls of rules, which the states share.
	k := len(d.classes)
	plain := make([]expr.ByteSet, k)
	others := make([]expr.RuneSet, k)
	for c, set := range d.classes {
		ascii := set.And(plainASCII)
		for i := 0; i < len(ascii); i += 2 {
			plain[c].AddRange(byte(ascii[i]), byte(ascii[i+1]))
		}
		others[c] = set.And(beyondPlain)
	}
	rules := map[string]*expr.Rule{} // by classes
	out := &expr.Graph{States: make([]expr.GraphState, len(d.accept))}
	type target struct {
		edge expr.GraphEdge
		key  []byte // the classes with other characters
	}
	var targets []target
	for s, ok := range d.accept {
		n := 0
		edges, calls := 0, 0
		for c, to := range d.row(int32(s)) {
			if to == dead {
				continue
			}
			i := 0
			for i < n && targets[i].edge.To != to {
				i++
			}
			if i == n {
				if n++; n > len(targets) {
					targets = append(targets, target{})
				}
				targets[i].edge, targets[i].key = expr.GraphEdge{To: to}, targets[i].key[:0]
			}
			targets[i].edge.Set = targets[i].edge.Set.Or(plain[c])
			if len(others[c]) > 0 {
				targets[i].key = binary.LittleEndian.AppendUint16(targets[i].key, uint16(c))
			}
		}
		for _, t := range targets[:n] {
			if t.edge.Set != (expr.ByteSet{}) {
				edges++
			}
			if len(t.key) > 0 {
				calls++
			}
		}
		state := &out.States[s]
		state.Accept, state.Edges = ok, make([]expr.GraphEdge, 0, edges)
		if calls > 0 {
			state.Calls = make([]expr.GraphCall, 0, calls)
		}
		for _, t := range targets[:n] {
			if t.edge.Set != (expr.ByteSet{}) {
				state.Edges = append(state.Edges, t.edge)
			}
			if len(t.key) == 0 {
				continue
			}
			rule := rules[string(t.key)]
			if rule == nil {
				rule = charRule(others, t.key)
				rules[string(t.key)] = rule
			}
			state.Calls = append(state.Calls, expr.GraphCall{Rule: rule, To: t.edge.To})
		}
	}
	return expr.Run(out)
}

var (
	plainASCII, beyondPlain = func() (plain, beyond expr.RuneSet) {
		plain, _ = jsontext.Split(expr.RuneSet{0, 0x7f})
		return plain, plain.Not()
	}()
	beyondASCII  = expr.RuneSet{0x80, 0xd7ff, 0xe000, utf8.MaxRune}
	escapedASCII = beyondPlain.And(expr.RuneSet{0, 0x7f})

	// Those that most automata call.
	anyBeyondPlain = newCharRule(beyondPlain)
	anyBeyondASCII = newCharRule(beyondASCII)
	anyEscaped     = newCharRule(escapedASCII)
)

// charRule returns the rule of one character of the classes that key lists.
func charRule(classes []expr.RuneSet, key []byte) *expr.Rule {
	var set expr.RuneSet
	if len(key) == 2 {
		set = classes[binary.LittleEndian.Uint16(key)]
	} else {
		var pairs []rune
		for i := 0; i < len(key); i += 2 {
			pairs = append(pairs, classes[binary.LittleEndian.Uint16(key[i:])]...)
		}
		set = expr.RuneSetOf(pairs)
	}
	switch {
	case slices.Equal(set, beyondPlain):
		return anyBeyondPlain
	case slices.Equal(set, beyondASCII):
		return anyBeyondASCII
	case slices.Equal(set, escapedASCII):
		return anyEscaped
	}
	return newCharRule(set)
}

// newCharRule returns the rule of one character of s inside a JSON string.
func newCharRule(s expr.RuneSet) *expr.Rule {
	plain, escapes := jsontext.Split(s)
	var ways []way
	for _, seq := range expr.Sequences(plain) {
		ways = append(ways, way{seq, 1})
	}
	for _, e := range escapes {
		seq := make([]expr.ByteSpan, len(e))
		for i := range len(e) {
			seq[i] = expr.ByteSpan{Lo: e[i], Hi: e[i]}
		}
		ways = append(ways, way{seq, 1})
	}
	g := &grapher{out: &expr.Graph{States: make([]expr.GraphState, 2)}, inner: map[string]int32{}}
	g.out.States[1].Accept = true
	edges := g.edges(ways)
	g.out.States[0].Edges = edges
	return &expr.Rule{Name: "character", Body: expr.Run(g.out)}
}

// way is a sequence of bytes that leads to a state.
type way struct {
	bytes []expr.ByteSpan
	to    int32
}

type grapher struct {
	out   *expr.Graph
	inner map[string]int32 // states inside a character, by the ways from them
}

// edges returns the edges of a state with these ways.
func (g *grapher) edges(ways []way) (out []expr.GraphEdge) {
	// Ways that begin with the same span have the same continuation on all its bytes: cut the bytes at the spans' ends.
	var cuts [257]bool
	for _, w := range ways {
		cuts[w.bytes[0].Lo] = true
		cuts[int(w.bytes[0].Hi)+1] = true
	}
	at := map[int32]int{} // edges by target
	for lo := 0; lo < 256; {
		hi := lo + 1
		for hi < 256 && !cuts[hi] {
			hi++
		}
		var rest []way
		for _, w := range ways {
			if int(w.bytes[0].Lo) <= lo && lo <= int(w.bytes[0].Hi) {
				rest = append(rest, way{w.bytes[1:], w.to})
			}
		}
		if len(rest) > 0 {
			to := g.state(rest)
			i, ok := at[to]
			if !ok {
				i = len(out)
				at[to] = i
				out = append(out, expr.GraphEdge{To: to})
			}
			out[i].Set.AddRange(byte(lo), byte(hi-1))
		}
		lo = hi
	}
	return out
}

// state returns the state with these ways, all of one length: 0 is the end of a character.
func (g *grapher) state(ways []way) int32 {
	if len(ways[0].bytes) == 0 {
		return ways[0].to
	}
	key := make([]byte, 0, 12*len(ways))
	for _, w := range ways {
		key = binary.LittleEndian.AppendUint32(key, uint32(w.to))
		key = append(key, byte(len(w.bytes)))
		for _, b := range w.bytes {
			key = append(key, b.Lo, b.Hi)
		}
	}
	if id, ok := g.inner[string(key)]; ok {
		return id
	}
	id := int32(len(g.out.States))
	g.out.States = append(g.out.States, expr.GraphState{})
	g.inner[string(key)] = id
	edges := g.edges(ways)
	g.out.States[id].Edges = edges
	return id
}
