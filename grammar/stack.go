package grammar

// frame is a return stack: what follows the current rule or repeated body, on top of another frame. Equal stacks are
// the same frame.
type frame struct {
	id   uint32
	node int32 // of a call: where it returns to; of a repetition: the repeat node
	// Of a repetition: how often the body must and may run again after this pass; max < 0: unbounded. Of a call: min is
	// 1 for a character, max a mark of unique.go.
	min, max int32
	repeat   bool
	rounded  bool // a count in this or a lower frame is approximate, see cut
	up       *frame
	cost     int64 // fewest bytes from here to the end of the text
	tokens   int64 // token bound for them, a sum over the stack, see findCosts
}

type frameKey struct {
	up       uint32
	node     int32
	min, max int32
	flags    uint8
}

// push returns the stack f with one more frame.
func (a *automaton) push(f *frame, node, least, most int32, repeat, rounded bool) *frame {
	rounded = rounded || f.rounded
	k := frameKey{up: f.id, node: node, min: least, max: most}
	if repeat {
		k.flags |= 1
	}
	if rounded {
		k.flags |= 2
	}
	if made, ok := a.frames[k]; ok {
		return made
	}
	n := &a.p.nodes[node]
	made := &frame{id: a.frameIDs, node: node, min: least, max: most, repeat: repeat, rounded: rounded, up: f,
		cost: f.cost, tokens: f.tokens}
	a.frameIDs++
	if repeat {
		made.cost = sum(made.cost, a.costs[n.next], times(int64(least), a.costs[n.arg]))
		made.tokens = sum(made.tokens, a.fewest(n.next), times(int64(least), a.fewest(n.arg)))
	} else {
		made.cost = sum(made.cost, a.costs[node])
		made.tokens = sum(made.tokens, a.fewest(node))
	}
	a.frames[k] = made
	a.byID = append(a.byID, made)
	a.bytes += 120
	return made
}

// sum and times saturate at infinite.
func sum(parts ...int64) (total int64) {
	for _, p := range parts {
		if total += p; total >= infinite {
			return infinite
		}
	}
	return total
}

func times(n, each int64) int64 {
	if n == 0 {
		return 0
	}
	if each >= infinite/n {
		return infinite
	}
	return n * each
}
