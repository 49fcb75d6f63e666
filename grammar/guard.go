package grammar

import (
	"bytes"
	"sync"

	"github.com/ingotml/ingot/grammar/items"
	"github.com/ingotml/ingot/grammar/trie"
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
func (a *automaton) completable(s *state, t *items.Text) bool {
	if s.tokens >= infinite {
		return false
	}
	if t == nil || a.settled(s, t) {
		return true
	}
	return (&completion{a: a, seen: map[searchKey]bool{}, left: maxSearch}).from(s, t)
}

// settled reports whether some item in progress can certainly be completed.
func (a *automaton) settled(s *state, t *items.Text) bool {
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
	a    *automaton
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
func (a *automaton) textAfter(s *state, t *items.Text, token int32) (*state, *items.Text) {
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

// crossing are the tokens that can complete an item that begins within them, by what comes before.
type crossing struct {
	once                    sync.Once
	opened, quoted, commaed trie.Trie
}

// crossingTrie returns the tokens after which a text may have a repeated item, or leave only such.
func (v *Vocabulary) crossingTrie(t *items.Text) *trie.Trie {
	if t.Matches() {
		return &v.all
	}
	x := &v.crossing
	x.once.Do(func() {
		of := func(wanted ...string) trie.Trie {
			var order []int32
			for i := range v.all.Nodes {
				if n := &v.all.Nodes[i]; n.Token != trie.None && inOrder(v.tokens[v.all.First(n)], wanted) {
					order = append(order, v.all.Between(int32(i), int32(i)+1)...)
				}
			}
			return trie.New(v.tokens, order)
		}
		x.opened, x.quoted, x.commaed = of("[{", ","), of(`"`, ","), of(",")
	})
	switch {
	case t == nil:
		return &x.opened
	case t.InString():
		return &x.quoted
	}
	return &x.commaed
}

// inOrder reports whether text has one byte of each, one after the other.
func inOrder(text []byte, wanted []string) bool {
	for _, set := range wanted {
		i := bytes.IndexAny(text, set)
		if i < 0 {
			return false
		}
		text = text[i+1:]
	}
	return true
}

// guard removes from a mask of s the tokens after which the text cannot be completed. It reports whether any is left.
func (a *automaton) guard(bits []uint32, s *state, t *items.Text) (any bool) {
	v := a.v.crossingTrie(t)
	var path [longestToken + 1]guarded
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
func (a *automaton) completionOf(s *state, t *items.Text) (out []byte, ok bool) {
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
func (a *automaton) reserve() int64 { return planReserve + 2*int64(a.p.required) }

// guardedMask is Mask for grammars with items that must differ.
func (m *Matcher) guardedMask(dst []uint32, remaining int) bool {
	a := m.a
	full := a.maskOf(m.s)
	copy(dst, full.bits)
	if remaining < 0 || sum(full.most, a.reserve()) <= int64(remaining)-1 {
		if a.guard(dst, m.s, m.t) || m.s.accept {
			return anyBit(dst)
		}
	} else {
		clear(dst)
		if left := int64(remaining) - a.reserve(); a.within(dst, m.s, left) && a.guard(dst, m.s, m.t) {
			return true
		}
		clear(dst)
		if m.s.accept {
			return false
		}
	}
	if m.plan == nil {
		m.plan, _ = a.completionOf(m.s, m.t)
	}
	if id, ok := a.coverFirst(m.plan); ok {
		dst[id>>5] |= 1 << (id & 31)
		return true
	}
	copy(dst, full.bits) // a way without a plan needs a token by its name
	return a.guard(dst, m.s, m.t)
}

func anyBit(bits []uint32) bool {
	for _, w := range bits {
		if w != 0 {
			return true
		}
	}
	return false
}

// coverFirst returns the first of the fewest tokens that spell b.
func (a *automaton) coverFirst(b []byte) (id int32, ok bool) {
	t, least := int32(-1), int64(infinite)
	for k := range b {
		if t = a.v.all.Child(t, b[k]); t < 0 {
			break
		}
		if n := &a.v.all.Nodes[t]; n.Token != trie.None {
			if rest := a.cover(b[k+1:]); rest < least {
				id, ok, least = a.v.all.First(n), true, rest
			}
		}
	}
	return id, ok
}

// advance drops a token from the plan, or the plan if the token leaves it.
func (m *Matcher) advance(token int32) {
	b := m.a.v.Bytes(token)
	if len(m.plan) >= len(b) && string(m.plan[:len(b)]) == string(b) {
		m.plan = m.plan[len(b):]
	} else {
		m.plan = nil
	}
}

// fewestUnique is Fewest for grammars with items that must differ.
func (m *Matcher) fewestUnique() int64 {
	if m.plan == nil {
		plan, ok := m.a.completionOf(m.s, m.t)
		if !ok {
			return m.s.tokens
		}
		m.plan = plan
	}
	return m.a.cover(m.plan)
}
