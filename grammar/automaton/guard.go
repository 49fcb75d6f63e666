package automaton

import (
	"github.com/ingotml/ingot/grammar/items"
	"github.com/ingotml/ingot/grammar/trie"
	"github.com/ingotml/ingot/grammar/vocabulary"
)

// Bounds of the search for a way to complete an item, and of a completion.
const (
	maxSearch = 1 << 14
	maxPlan   = 1 << 13
	// planReserve is the number of tokens that a mask near the end of a budget keeps for items that must be longer than
	// the shortest ones, which are in the array already.
	planReserve = 16
)

// completable reports whether the text can be completed: whether some text to the end of each open item is none of the
// items before it. Items that follow are no obstacle: a schema is refused if they could be. Where the search exceeds
// its bound, it reports false; a way that it found before, it finds again.
func (a *Automaton) completable(s *state, t *items.Text) bool {
	if s.tokens >= infinite {
		return false
	}
	if t == nil || a.settled(s, t) {
		return true
	}
	return (&completion{a: a, seen: map[searchKey]bool{}, left: maxSearch}).from(s, t)
}

// settled reports whether some item in progress can certainly be completed.
func (a *Automaton) settled(s *state, t *items.Text) bool {
	if s.accept || !t.Matches() {
		return true
	}
	u := a.findUnique(s)
	return u.loose || u.free && !t.Full()
}

type searchKey struct {
	s    *state
	text uint64
}

type completion struct {
	a    *Automaton
	seen map[searchKey]bool
	left int // steps until the search gives up
}

// from searches through the bytes that may follow. Only those that keep the item equal to one before it go on.
func (c *completion) from(s *state, t *items.Text) bool {
	key := searchKey{s, t.Hash()}
	if c.seen[key] || t.Full() {
		return false
	}
	c.seen[key] = true
	type way struct {
		s *state
		t *items.Text
	}
	var ways []way
	for b := range 256 {
		if c.a.step(s, byte(b)) == c.a.dead {
			continue
		}
		if c.left--; c.left < 0 {
			return false
		}
		to, text := c.a.stepText(s, t, byte(b))
		if to.tokens >= infinite {
			continue
		}
		if text == nil || c.a.settled(to, text) {
			return true
		}
		ways = append(ways, way{to, text})
	}
	for _, w := range ways {
		if c.from(w.s, w.t) {
			return true
		}
	}
	return false
}

// textAfter is afterToken with the text. It returns the dead state if the text cannot be completed after the token.
func (a *Automaton) textAfter(s *state, t *items.Text, token int32) (*state, *items.Text) {
	next, text := a.dead, t
	if b := a.v.Bytes(token); len(b) > 0 {
		next = s
		for _, c := range b {
			if next, text = a.stepText(next, text, c); next == a.dead {
				break
			}
		}
	}
	if next != a.dead && !a.completable(next, text) {
		next = a.dead
	}
	if a.namesTokens(s) {
		named := a.afterNamed(s, token)
		if next == a.dead {
			return named, nil
		}
		next = a.merge(next, named)
	}
	return next, text
}

// guarded is a position in a walk with the text.
type guarded struct {
	s        *state
	t        *items.Text
	diverges bool // a repeated item has dropped places
}

// Kinds of bytes that the rest of a token must have to complete an item that begins later.
var (
	commaKinds  = uint64(1) << trie.KindOf[',']
	quotedKinds = commaKinds | 1<<trie.KindOf['"']
)

// guard removes from a mask of s the tokens after which the text cannot be completed. It reports whether any is left.
func (a *Automaton) guard(bits []uint32, s *state, t *items.Text) (any bool) {
	v := a.v.Crossing(t)
	var path [vocabulary.LongestToken + 1]guarded
	path[0] = guarded{s: s, t: t}
	for i, end := int32(0), int32(len(v.Nodes)); i < end; {
		n := &v.Nodes[i]
		at := path[n.Depth-1]
		if !at.diverges && !mayRepeat(at.t, v.Below[i]|1<<trie.KindOf[n.Key]) {
			i = n.Skip
			continue
		}
		if a.work > maxWork { // what is not known to be allowed is not
			v.ClearAll(bits, i, end)
			break
		}
		next := guarded{diverges: at.diverges}
		plain := a.step(at.s, n.Key)
		if plain == a.dead && !at.diverges { // the mask has none of them
			i = n.Skip
			continue
		}
		if next.s, next.t = a.stepText(at.s, at.t, n.Key); next.s == a.dead {
			v.ClearAll(bits, i, n.Skip)
			i = n.Skip
			continue
		}
		next.diverges = next.diverges || next.s != plain
		if n.Token != trie.None && (next.diverges || next.t.Matches()) && !a.completable(next.s, next.t) {
			v.ClearAll(bits, i, i+1)
		}
		path[n.Depth] = next
		i++
	}
	a.takeNamed(bits, s, func(next *state) bool { return next.tokens < infinite })
	for _, w := range bits {
		any = any || w != 0
	}
	return any
}

// mayRepeat reports whether bytes of these kinds may complete an item that repeats one before it, or leave only such.
func mayRepeat(t *items.Text, kinds uint64) bool {
	need := commaKinds
	switch {
	case t.Matches():
		return true
	case t.InString():
		need = quotedKinds
	}
	return kinds&need == need
}

// completionOf returns a text that completes the one so far, close to the shortest, or false if it finds none.
func (a *Automaton) completionOf(s *state, t *items.Text) (out []byte, ok bool) {
	for !s.accept && len(out) < maxPlan {
		var best guarded
		var with byte
		fresh := false
		for b := range 256 {
			to := a.step(s, byte(b))
			if to == a.dead || best.s != nil && (to.cost > best.s.cost || to.cost == best.s.cost && fresh) {
				continue
			}
			to, text := a.stepText(s, t, byte(b))
			if to.cost >= infinite || best.s != nil && (to.cost > best.s.cost || to.cost == best.s.cost && text.Matches()) ||
				!a.completable(to, text) {
				continue
			}
			best, with, fresh = guarded{s: to, t: text}, byte(b), !text.Matches()
		}
		if best.s == nil {
			return nil, false
		}
		out = append(out, with)
		s, t = best.s, best.t
	}
	return out, s.accept
}

// reserve is planReserve with the items that arrays of the grammar require.
func (a *Automaton) reserve() int64 { return planReserve + 2*int64(a.p.Required) }

// position is a point of a text.
type position struct {
	a *Automaton
	s *state

	// Of grammars with items that must differ, see unique.go.
	t    *items.Text
	plan []byte // completes the text, near the end of its budget; nil: not computed
}

// guardedMask is Mask for grammars with items that must differ.
func (p *position) guardedMask(dst []uint32, remaining int) bool {
	a := p.a
	full := a.maskOf(p.s)
	copy(dst, full.bits)
	if remaining < 0 || sum(full.most, a.reserve()) <= int64(remaining)-1 {
		if a.guard(dst, p.s, p.t) || p.s.accept {
			return anyBit(dst)
		}
	} else {
		clear(dst)
		if left := int64(remaining) - a.reserve(); a.within(dst, p.s, left) && a.guard(dst, p.s, p.t) {
			return true
		}
		clear(dst)
		if p.s.accept {
			return false
		}
	}
	if p.plan == nil {
		p.plan, _ = a.completionOf(p.s, p.t)
	}
	if id, ok := a.coverFirst(p.plan); ok {
		dst[id>>5] |= 1 << (id & 31)
		return true
	}
	copy(dst, full.bits) // a way without a plan needs a token by its name
	return a.guard(dst, p.s, p.t)
}

func anyBit(bits []uint32) bool {
	for _, w := range bits {
		if w != 0 {
			return true
		}
	}
	return false
}

// advance drops a token from the plan, or the plan if the token leaves it.
func (p *position) advance(token int32) {
	b := p.a.v.Bytes(token)
	if len(p.plan) >= len(b) && string(p.plan[:len(b)]) == string(b) {
		p.plan = p.plan[len(b):]
	} else {
		p.plan = nil
	}
}

// fewestUnique is Fewest for grammars with items that must differ.
func (p *position) fewestUnique() int64 {
	if p.plan == nil {
		plan, ok := p.a.completionOf(p.s, p.t)
		if !ok {
			return p.s.tokens
		}
		p.plan = plan
	}
	return p.a.cover(p.plan)
}
