package dfa

import (
	"slices"
	"sync"

	"github.com/ingotml/ingot/grammar/expr"
)

// Intersect accepts what both accept.
func Intersect(a, b *DFA) (*DFA, error) {
	return product(a, b, func(x, y bool) bool { return x && y }, false, false)
}

// Minus accepts what a accepts and b does not. It is ErrLimit if b is short.
func Minus(a, b *DFA) (*DFA, error) {
	if b.Short() {
		return nil, errLimit()
	}
	return product(a, b, func(x, y bool) bool { return x && !y }, false, true)
}

// Union accepts what either accepts.
func Union(a, b *DFA) (*DFA, error) {
	return product(a, b, func(x, y bool) bool { return x || y }, true, true)
}

// Not accepts what d does not.
func Not(d *DFA) (*DFA, error) { return Minus(Any(), d) }

// joint is a class of a product: the characters of class a of one automaton and b of the other.
type joint struct {
	set  expr.RuneSet
	a, b int
}

// refine returns the joint classes of two partitions.
func refine(a, b []expr.RuneSet) []joint {
	type span struct {
		lo, hi rune
		class  int
	}
	spans := func(classes []expr.RuneSet) (out []span) {
		for c, set := range classes {
			for i := 0; i < len(set); i += 2 {
				out = append(out, span{set[i], set[i+1], c})
			}
		}
		slices.SortFunc(out, func(x, y span) int { return int(x.lo - y.lo) })
		return out
	}
	x, y := spans(a), spans(b)
	at := map[[2]int]int{}
	var out []joint
	for i, k := 0, 0; i < len(x) && k < len(y); {
		if lo, hi := max(x[i].lo, y[k].lo), min(x[i].hi, y[k].hi); lo <= hi {
			key := [2]int{x[i].class, y[k].class}
			j, ok := at[key]
			if !ok {
				j = len(out)
				at[key] = j
				out = append(out, joint{a: key[0], b: key[1]})
			}
			out[j].set = append(out[j].set, lo, hi)
		}
		if x[i].hi < y[k].hi {
			i++
		} else {
			k++
		}
	}
	return out
}

// maxTable bounds the pairs of states that product numbers in a table.
const maxTable = 1 << 18

// pair is states of two automata.
type pair struct{ a, b int32 }

// productScratch is memory of one product that the next one uses again.
type productScratch struct {
	table, next []int32
	accept      []bool
	order       []pair
}

var products = sync.Pool{New: func() any { return &productScratch{} }}

// product explores the pairs of states of a and b. aMayDie and bMayDie tell whether a pair is of use where that side is
// dead.
func product(a, b *DFA, accept func(a, b bool) bool, aMayDie, bMayDie bool) (*DFA, error) {
	classes := refine(a.classes, b.classes)
	out := &DFA{short: shorter(a.short, b.short)}
	for _, c := range classes {
		out.classes = append(out.classes, c.set)
	}
	work := products.Get().(*productScratch)
	defer products.Put(work)
	start := pair{dead, dead}
	if !a.Empty() {
		start.a = 0
	}
	if !b.Empty() {
		start.b = 0
	}
	// The number of each pair, plus 1: in a table where that is small.
	width := len(b.accept) + 1
	var table []int32
	var ids map[pair]int32
	if all := (len(a.accept) + 1) * width; all <= maxTable {
		table = slices.Grow(work.table[:0], all)[:all]
		clear(table)
		work.table = table
	} else {
		ids = map[pair]int32{}
	}
	order := work.order[:0]
	visit := func(p pair) int32 {
		if p.a == dead && (!aMayDie || p.b == dead) || p.b == dead && !bMayDie {
			return dead
		}
		var id int32
		if table != nil {
			id = table[int(p.a+1)*width+int(p.b+1)]
		} else {
			id = ids[p]
		}
		if id == 0 {
			order = append(order, p)
			if id = int32(len(order)); table != nil {
				table[int(p.a+1)*width+int(p.b+1)] = id
			} else {
				ids[p] = id
			}
		}
		return id - 1
	}
	visit(start)
	out.next, out.accept = work.next[:0], work.accept[:0]
	for i := 0; i < len(order); i++ {
		if len(order) > maxStates {
			return nil, errLimit()
		}
		p := order[i]
		out.accept = append(out.accept, accept(p.a != dead && a.accept[p.a], p.b != dead && b.accept[p.b]))
		for _, c := range classes {
			to := pair{dead, dead}
			if p.a != dead {
				to.a = a.row(p.a)[c.a]
			}
			if p.b != dead {
				to.b = b.row(p.b)[c.b]
			}
			out.next = append(out.next, visit(to))
		}
	}
	work.order, work.next, work.accept = order, out.next, out.accept
	return out.trim().Minimize(), nil // trim copies
}

// Length restricts d to texts of least to most characters; most < 0: unbounded.
func Length(d *DFA, least, most int) (*DFA, error) {
	if d.Empty() || least <= 0 && most < 0 {
		return d, nil
	}
	limit := max(least, most+1) // counts saturate here
	if most < 0 {
		limit = least
	}
	type at struct {
		state int32
		n     int
	}
	limited, err := Explore(d.classes, at{}, func(p at, class int) (at, bool) {
		to, n := d.row(p.state)[class], min(p.n+1, limit)
		return at{to, n}, to != dead && (most < 0 || n <= most)
	}, func(p at) bool {
		return d.accept[p.state] && p.n >= least && (most < 0 || p.n <= most)
	})
	if err == nil {
		limited.short = d.short
	}
	return limited, err
}

// maxRounds bounds the rounds of Minimize: an automaton that is not minimal is still correct.
const maxRounds = 40

// Minimize merges states that accept the same texts, and classes that no state distinguishes.
func (d *DFA) Minimize() *DFA {
	n := len(d.accept)
	if n == 0 {
		return d
	}
	d = d.mergeClasses()
	k := len(d.classes)
	group := make([]int32, n)
	count := 1
	for s, ok := range d.accept {
		if ok != d.accept[0] {
			group[s], count = 1, 2
		}
	}
	next := make([]int32, n)
	ids := make(map[uint64]int32, 2*count) // by hash: stable finds what collides
	for range maxRounds {
		clear(ids)
		for s := range n {
			h := mix(1, group[s])
			for _, to := range d.row(int32(s)) {
				g := int32(dead)
				if to != dead {
					g = group[to]
				}
				h = mix(h, g)
			}
			id, ok := ids[h]
			if !ok {
				id = int32(len(ids))
				ids[h] = id
			}
			next[s] = id
		}
		group, next = next, group
		if len(ids) == count {
			break
		}
		if count = len(ids); count == n {
			return d
		}
	}
	if !d.stable(group) {
		return d
	}
	out := &DFA{classes: d.classes, accept: make([]bool, count), next: make([]int32, count*k), short: d.short}
	for s := n - 1; s >= 0; s-- {
		g := int(group[s])
		out.accept[g] = d.accept[s]
		for c, to := range d.row(int32(s)) {
			out.next[g*k+c] = dead
			if to != dead {
				out.next[g*k+c] = group[to]
			}
		}
	}
	return out
}

// mix adds a number to a hash. Each step is a bijection for a fixed number.
func mix(h uint64, n int32) uint64 {
	h = (h ^ uint64(uint32(n))) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// stable reports whether equal groups have equal successors.
func (d *DFA) stable(group []int32) bool {
	first := map[int32]int32{}
	for s, g := range group {
		f, ok := first[g]
		if !ok {
			first[g] = int32(s)
			continue
		}
		if d.accept[f] != d.accept[s] {
			return false
		}
		other := d.row(int32(s))
		for c, to := range d.row(f) {
			if (to == dead) != (other[c] == dead) || to != dead && group[to] != group[other[c]] {
				return false
			}
		}
	}
	return true
}

// mergeClasses merges the classes that lead to the same states everywhere.
func (d *DFA) mergeClasses() *DFA {
	n, k := len(d.accept), len(d.classes)
	hashes := make([]uint64, k)
	for s := range n {
		for c, to := range d.row(int32(s)) {
			hashes[c] = mix(hashes[c], to)
		}
	}
	equal := func(a, b int) bool {
		for at := 0; at < len(d.next); at += k {
			if d.next[at+a] != d.next[at+b] {
				return false
			}
		}
		return true
	}
	to := make([]int, k)
	var first []int
	for c := range k {
		to[c] = slices.IndexFunc(first, func(f int) bool { return hashes[f] == hashes[c] && equal(f, c) })
		if to[c] < 0 {
			to[c] = len(first)
			first = append(first, c)
		}
	}
	if len(first) == k {
		return d
	}
	out := &DFA{accept: d.accept, classes: make([]expr.RuneSet, len(first)), next: make([]int32, n*len(first)),
		short: d.short}
	pairs := make([][]rune, len(first))
	for c, set := range d.classes {
		pairs[to[c]] = append(pairs[to[c]], set...)
	}
	for i, p := range pairs {
		out.classes[i] = expr.RuneSetOf(p)
	}
	for s := range n {
		for i, c := range first {
			out.next[s*len(first)+i] = d.next[s*k+c]
		}
	}
	return out
}

// Count returns the number of texts that d accepts, or most+1 if there are more than most.
func (d *DFA) Count(most int) int {
	if d.Empty() {
		return 0
	}
	memo := make([]int, len(d.accept)) // 0: not known; -1: on the path
	var of func(s int32) int
	of = func(s int32) int {
		switch {
		case memo[s] == -1:
			return most + 1 // a loop through a live state
		case memo[s] > 0:
			return memo[s] - 1
		}
		memo[s] = -1
		total := 0
		if d.accept[s] {
			total++
		}
		for c, to := range d.row(s) {
			if to == dead || total > most {
				continue
			}
			size := 0
			for i := 0; i < len(d.classes[c]); i += 2 {
				size += int(d.classes[c][i+1]-d.classes[c][i]) + 1
			}
			total = min(total+size*min(of(to), most+1), most+1)
		}
		memo[s] = total + 1
		return total
	}
	return of(0)
}

// List returns all texts that d accepts, which must be few; see Count.
func (d *DFA) List() (texts []string) {
	if d.Empty() {
		return nil
	}
	var at func(s int32, text []rune)
	at = func(s int32, text []rune) {
		if d.accept[s] {
			texts = append(texts, string(text))
		}
		for c, to := range d.row(s) {
			if to == dead {
				continue
			}
			for i := 0; i < len(d.classes[c]); i += 2 {
				for r := d.classes[c][i]; r <= d.classes[c][i+1]; r++ {
					at(to, append(slices.Clip(text), r))
				}
			}
		}
	}
	at(0, nil)
	return texts
}
