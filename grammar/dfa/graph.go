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
	g := &grapher{out: &expr.Graph{States: make([]expr.GraphState, len(d.accept))}, inner: map[string]int32{}}
	if g.simple(d) {
		return expr.Run(g.out)
	}
	spellings := make([][][]expr.ByteSpan, len(d.classes))
	for c, set := range d.classes {
		plain, escapes := jsontext.Split(set)
		spellings[c] = expr.Sequences(plain)
		for _, e := range escapes {
			var seq []expr.ByteSpan
			for i := range len(e) {
				seq = append(seq, expr.ByteSpan{Lo: e[i], Hi: e[i]})
			}
			spellings[c] = append(spellings[c], seq)
		}
	}
	for s, ok := range d.accept {
		var ways []way
		for c, to := range d.row(int32(s)) {
			if to == dead {
				continue
			}
			for _, seq := range spellings[c] {
				ways = append(ways, way{seq, to})
			}
		}
		g.out.States[s].Accept = ok
		edges := g.edges(ways)
		g.out.States[s].Edges = edges
	}
	return expr.Run(g.out)
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

// simple fills the states if all characters outside of ASCII are of one class, and so are those that need an escape: as
// in almost all automata of names and patterns. It reports whether they are.
func (g *grapher) simple(d *DFA) bool {
	class := func(r rune) int {
		return slices.IndexFunc(d.classes, func(s expr.RuneSet) bool { return s.Has(r) })
	}
	high, escaped := class(0x80), class(0)
	needs, _ := jsontext.Split(expr.RuneSet{0, 0x7f})
	var ascii [0x80]int
	for r := range rune(0x80) {
		if ascii[r] = class(r); !needs.Has(r) {
			if ascii[r] != escaped {
				return false
			}
			ascii[r] = -1
		}
	}
	if last := d.classes[high]; last[len(last)-1] != utf8.MaxRune || len(last.And(beyondASCII)) != len(beyondASCII) {
		return false
	}
	seqs := expr.Sequences(beyondASCII)
	_, escapes := jsontext.Split(expr.RuneSet{0, 0x7f})
	beyond := map[int32][]expr.GraphEdge{} // of characters that are not plain ASCII, by target
	special := func(to int32, seqs [][]expr.ByteSpan) []expr.GraphEdge {
		if edges, ok := beyond[to]; ok {
			return edges
		}
		ways := make([]way, len(seqs))
		for i, s := range seqs {
			ways[i] = way{s, to}
		}
		edges := g.edges(ways)
		beyond[to] = edges
		return edges
	}
	escapeSeqs := make([][]expr.ByteSpan, len(escapes))
	for i, e := range escapes {
		for k := range len(e) {
			escapeSeqs[i] = append(escapeSeqs[i], expr.ByteSpan{Lo: e[k], Hi: e[k]})
		}
	}
	both := high == escaped
	byEscape := map[int32][]expr.GraphEdge{}
	escapeEdges := func(to int32) []expr.GraphEdge {
		edges, ok := byEscape[to]
		if !ok {
			ways := make([]way, len(escapeSeqs))
			for i, s := range escapeSeqs {
				ways[i] = way{s, to}
			}
			edges = g.edges(ways)
			byEscape[to] = edges
		}
		return edges
	}
	for s, ok := range d.accept {
		row := d.row(int32(s))
		var edges []expr.GraphEdge
		for b, c := range ascii {
			if c < 0 || row[c] == dead {
				continue
			}
			i := slices.IndexFunc(edges, func(e expr.GraphEdge) bool { return e.To == row[c] })
			if i < 0 {
				i = len(edges)
				edges = append(edges, expr.GraphEdge{To: row[c]})
			}
			edges[i].Set.Add(byte(b))
		}
		switch {
		case both && row[high] != dead:
			edges = append(edges, special(row[high], append(slices.Clip(seqs), escapeSeqs...))...)
		case !both:
			if row[high] != dead {
				edges = append(edges, special(row[high], seqs)...)
			}
			if row[escaped] != dead {
				edges = append(edges, escapeEdges(row[escaped])...)
			}
		}
		g.out.States[s].Accept, g.out.States[s].Edges = ok, edges
	}
	return true
}

// beyondASCII are the characters of more than one byte.
var beyondASCII = expr.RuneSet{0x80, 0xd7ff, 0xe000, utf8.MaxRune}
