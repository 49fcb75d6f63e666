package dfa

import (
	"encoding/binary"
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
)

// maxNFA bounds the nodes of the nondeterministic automaton of a pattern.
const maxNFA = 1 << 15

// Compile returns the automaton of the texts that n matches as a whole.
func Compile(n Node) (*DFA, error) { return compileLooks(n, false) }

// CompileShort is Compile, but may leave out long texts where look-ahead would need too many states. See Short.
func CompileShort(n Node) (*DFA, error) { return compileLooks(n, true) }

func compileLooks(n Node, short bool) (*DFA, error) {
	if n.has(opLook) {
		var err error
		if n, err = resolveLooks([]Node{n}, true, short); err != nil {
			return nil, err
		}
	}
	return compile(n, true)
}

func compile(n Node, atStart bool) (*DFA, error) {
	b := &builder{}
	start, err := b.add(n, b.node(nfaNode{op: nfaAccept}))
	if err != nil {
		return nil, err
	}
	return b.determinize(start, atStart)
}

type nfaOp uint8

const (
	nfaSet nfaOp = iota
	nfaSplit
	nfaBegin
	nfaEnd
	nfaWord
	nfaNotWord
	nfaAccept
)

type nfaNode struct {
	op  nfaOp
	set expr.RuneSet
	out []int32
}

type builder struct {
	nodes []nfaNode
	short int // of its machines, see DFA
}

func (b *builder) node(n nfaNode) int32 {
	b.nodes = append(b.nodes, n)
	return int32(len(b.nodes) - 1)
}

// add returns the node where n begins if it continues at next.
func (b *builder) add(n Node, next int32) (int32, error) {
	if len(b.nodes) > maxNFA {
		return 0, expr.Errorf(expr.ErrLimit, "a pattern of more than %d places", maxNFA)
	}
	switch n.op {
	case opCat:
		var err error
		for _, s := range slices.Backward(n.subs) {
			if next, err = b.add(s, next); err != nil {
				return 0, err
			}
		}
		return next, nil
	case opAlt:
		out := make([]int32, len(n.subs))
		for i, s := range n.subs {
			var err error
			if out[i], err = b.add(s, next); err != nil {
				return 0, err
			}
		}
		return b.node(nfaNode{op: nfaSplit, out: out}), nil
	case opSet:
		return b.node(nfaNode{op: nfaSet, set: n.set, out: []int32{next}}), nil
	case opRepeat:
		return b.repeat(n, next)
	case opBegin:
		return b.node(nfaNode{op: nfaBegin, out: []int32{next}}), nil
	case opEnd:
		return b.node(nfaNode{op: nfaEnd, out: []int32{next}}), nil
	case opWord:
		op := nfaWord
		if n.negated {
			op = nfaNotWord
		}
		return b.node(nfaNode{op: op, out: []int32{next}}), nil
	case opMachine:
		return b.embed(n.machine, next), nil
	}
	return 0, expr.Errorf(expr.ErrUnsupported, "look-ahead here")
}

func (b *builder) repeat(n Node, next int32) (int32, error) {
	at := next
	var err error
	if n.max < 0 {
		loop := b.node(nfaNode{op: nfaSplit})
		body, err := b.add(n.subs[0], loop)
		if err != nil {
			return 0, err
		}
		b.nodes[loop].out = []int32{body, next}
		at = loop
	} else {
		for range n.max - n.min {
			body, err := b.add(n.subs[0], at)
			if err != nil {
				return 0, err
			}
			at = b.node(nfaNode{op: nfaSplit, out: []int32{body, next}})
		}
	}
	for range n.min {
		if at, err = b.add(n.subs[0], at); err != nil {
			return 0, err
		}
	}
	return at, nil
}

// embed adds the states of an automaton.
func (b *builder) embed(d *DFA, next int32) int32 {
	if d.Empty() {
		return b.node(nfaNode{op: nfaSplit})
	}
	b.short = shorter(b.short, d.short)
	first := int32(len(b.nodes))
	for range d.accept {
		b.node(nfaNode{op: nfaSplit})
	}
	for s := range d.accept {
		var out []int32
		for c, to := range d.row(int32(s)) {
			if to != dead {
				out = append(out, b.node(nfaNode{op: nfaSet, set: d.classes[c], out: []int32{first + to}}))
			}
		}
		if d.accept[s] {
			out = append(out, next)
		}
		b.nodes[first+int32(s)].out = out
	}
	return first
}

var wordChars = expr.RuneSet{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'}

// alphabet partitions the characters by the sets of the nodes, and returns which classes each node takes.
func (b *builder) alphabet(words bool) (classes []expr.RuneSet, takes [][]int) {
	sets := map[string]int{}
	var all []expr.RuneSet
	of := make([]int, len(b.nodes))
	note := func(s expr.RuneSet) int {
		id, ok := sets[string(s)]
		if !ok {
			id = len(all)
			sets[string(s)] = id
			all = append(all, s)
		}
		return id
	}
	for i, n := range b.nodes {
		if n.op == nfaSet {
			of[i] = note(n.set)
		}
	}
	if words {
		note(wordChars)
	}
	classes = []expr.RuneSet{expr.EveryRune}
	for _, s := range all {
		joints := refine(classes, []expr.RuneSet{s, s.Not()})
		classes = classes[:0:0]
		for _, j := range joints {
			classes = append(classes, j.set)
		}
	}
	takenBy := make([][]int, len(all))
	for i, s := range all {
		for c, class := range classes {
			if s.Has(class[0]) {
				takenBy[i] = append(takenBy[i], c)
			}
		}
	}
	takes = make([][]int, len(b.nodes))
	for i, n := range b.nodes {
		if n.op == nfaSet {
			takes[i] = takenBy[of[i]]
		}
	}
	return classes, takes
}

// where is what assertions look at.
type where struct{ begin, end, before, after bool }

// closure returns the nodes that are reachable from kernel without a character, sorted: those that take one, and
// whether the text may end.
func (b *builder) closure(kernel []int32, at where, seen []int32, mark int32) (takers []int32, accept bool) {
	stack := slices.Clone(kernel)
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[i] == mark {
			continue
		}
		seen[i] = mark
		n := &b.nodes[i]
		pass := false
		switch n.op {
		case nfaAccept:
			accept = true
		case nfaSet:
			takers = append(takers, i)
		case nfaSplit:
			pass = true
		case nfaBegin:
			pass = at.begin
		case nfaEnd:
			pass = at.end
		case nfaWord:
			pass = at.before != at.after
		case nfaNotWord:
			pass = at.before == at.after
		}
		if pass {
			stack = append(stack, n.out...)
		}
	}
	return takers, accept
}

func (b *builder) determinize(start int32, atStart bool) (*DFA, error) {
	words := slices.ContainsFunc(b.nodes, func(n nfaNode) bool { return n.op == nfaWord || n.op == nfaNotWord })
	classes, takes := b.alphabet(words)
	isWord := make([]bool, len(classes))
	for c, set := range classes {
		isWord[c] = wordChars.Has(set[0])
	}
	type state struct {
		kernel        []int32
		begin, before bool
	}
	seen := make([]int32, len(b.nodes))
	mark := int32(0)
	ids := map[string]int32{}
	var order []state
	var key []byte
	intern := func(s state) int32 {
		slices.Sort(s.kernel)
		s.kernel = slices.Compact(s.kernel)
		key = append(key[:0], btoi(s.begin), btoi(s.before && words))
		for _, i := range s.kernel {
			key = binary.LittleEndian.AppendUint32(key, uint32(i))
		}
		id, ok := ids[string(key)]
		if !ok {
			id = int32(len(order))
			ids[string(key)] = id
			order = append(order, s)
		}
		return id
	}
	intern(state{[]int32{start}, atStart, false})
	out := &DFA{classes: classes, short: b.short}
	targets := make([][]int32, len(classes))
	work := 0
	for i := 0; i < len(order); i++ {
		s := order[i]
		if work += len(s.kernel) + len(classes); len(order) > maxStates || work > 64*maxStates {
			return nil, errLimit()
		}
		mark++
		_, accept := b.closure(s.kernel, where{begin: s.begin, end: true, before: s.before}, seen, mark)
		out.accept = append(out.accept, accept)
		for c := range targets {
			targets[c] = targets[c][:0]
		}
		for _, after := range []bool{false, true} {
			if after && !words {
				break
			}
			mark++
			takers, _ := b.closure(s.kernel, where{begin: s.begin, before: s.before, after: after}, seen, mark)
			work += len(takers)
			for _, n := range takers {
				for _, c := range takes[n] {
					if !words || isWord[c] == after {
						targets[c] = append(targets[c], b.nodes[n].out[0])
					}
				}
			}
		}
		for c, kernel := range targets {
			to := int32(dead)
			if len(kernel) > 0 {
				to = intern(state{kernel: slices.Clone(kernel), before: isWord[c]})
			}
			out.next = append(out.next, to)
		}
	}
	return out.trim().Minimize(), nil
}

func btoi(b bool) byte {
	if b {
		return 1
	}
	return 0
}
