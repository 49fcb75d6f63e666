// Package items follows JSON text while it is written and reports whether the last item of an array equals an item
// before it, or the last name of an object a name before it.
//
// Contract: values are equal as in JSON Schema: numbers by value, strings by their decoded characters, objects in any
// order of their members, of which the last counts if a name is repeated. Everything is immutable, so a text can be
// continued in several ways. A text is a state of its open arrays: its memory is that of their items.
package items

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
)

// Text is what has been written of arrays whose items are compared, and objects whose names are, from the outermost one
// on. The zero of a text is nil: none is open.
type Text struct {
	views []*view
	// crowded: more arrays than maxViews are open in ways that exclude each other. All items then count as repeated.
	crowded bool
}

// maxViews bounds the readings of one text. JSON has one; other grammars may leave open where JSON begins.
const maxViews = 4

// Next returns the text after b. opens reports whether b is the bracket of an array or an object that is compared.
func (t *Text) Next(b byte, opens bool) *Text {
	if t == nil && !opens {
		return nil
	}
	var out *Text
	inside := false // b is a bracket in a text that is followed already
	if t != nil {
		out = &Text{crowded: t.crowded}
		if len(t.views) == 1 {
			out.views = make([]*view, 0, 1)
		}
		for _, v := range t.views {
			inside = inside || opens && v.wantsValue()
			if next := v.next(b, opens); next != nil {
				out.views = append(out.views, next)
			}
		}
	} else {
		out = &Text{}
	}
	switch {
	case !opens || inside:
	case len(out.views) >= maxViews:
		out.crowded = true
	default:
		out.views = append(out.views, &view{top: &level{watched: true, object: b == '{'}})
	}
	if len(out.views) == 0 {
		return nil
	}
	return out
}

// Repeats reports whether the last item of the innermost array, or the last name of the innermost object, equals one
// before it, if it is complete here.
func (t *Text) Repeats() bool {
	return t != nil && (t.crowded || slices.ContainsFunc(t.views, (*view).repeats))
}

// Matches reports whether the value that is being written, or an item or a name that follows next, may become equal to
// one that it must differ from. If it does not, only those that begin later can be repeated.
func (t *Text) Matches() bool {
	return t != nil && (t.crowded || slices.ContainsFunc(t.views, (*view).matches))
}

// Full reports whether an open array has an item beyond limits.GrammarUniqueItems.
func (t *Text) Full() bool {
	return t != nil && slices.ContainsFunc(t.views, func(v *view) bool {
		for l := v.top; l != nil; l = l.up {
			if l.full() {
				return true
			}
		}
		return false
	})
}

// InString reports whether the next byte is part of a string.
func (t *Text) InString() bool {
	return t != nil && len(t.views) == 1 && t.views[0].kind == inString
}

// Hash identifies what follows: texts with equal hashes continue alike.
func (t *Text) Hash() uint64 {
	if t == nil {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(seed)
	for _, v := range t.views {
		v.hash(&h)
	}
	return h.Sum64()
}

var seed = maphash.MakeSeed()

// level is an open array or object.
type level struct {
	up      *level
	object  bool
	watched bool // the items or names are compared
	at      stage
	n       int // values so far

	seen    []*Value // items or names if they are compared, sorted, without the last one
	sum     uint64   // identifies seen
	last    *Value
	repeats bool // last equals one before it

	matching []*Value // values that this one may still become, sorted
	began    []*Value // matching when it began
	parts    []*Value // values so far, if they are needed
	names    []string // of an object's values
	name     string   // of the value that follows

	items     []*Value // what the next value may equal, see candidates
	itemsMade bool
}

// stage is what a container expects next.
type stage uint8

const (
	first   stage = iota // a value, a name or the end
	value                // a value
	colon                // a colon
	another              // a comma or the end
	name                 // a name
)

func (l *level) full() bool {
	if !l.watched {
		return false
	}
	n := l.n
	if l.at != another { // a value is under way
		n++
	}
	return n > limits.GrammarUniqueItems
}

// candidates returns the values that the next one may become equal to, sorted.
func (l *level) candidates() []*Value {
	if l.itemsMade {
		return l.items
	}
	l.itemsMade = true
	named := l.object && (l.at == first || l.at == name)
	switch {
	case len(l.matching) == 0 && (named || !l.object):
		l.items = l.seen
		return l.items
	case named:
		l.items = slices.Clone(l.seen)
		for _, m := range l.matching {
			for _, n := range m.names {
				l.items = append(l.items, &Value{Key: `"` + n})
			}
		}
	case l.object:
		for _, m := range l.matching {
			if v := m.get(l.name); v != nil {
				l.items = append(l.items, v)
			}
		}
	default:
		l.items = slices.Clone(l.seen)
		for _, m := range l.matching {
			if l.n < len(m.parts) {
				l.items = append(l.items, m.parts[l.n])
			}
		}
	}
	slices.SortFunc(l.items, byKey)
	l.items = slices.CompactFunc(l.items, func(a, b *Value) bool { return a.Key == b.Key })
	return l.items
}

func byKey(a, b *Value) int { return strings.Compare(a.Key, b.Key) }

// step returns l after a comma, a colon or a name.
func (l *level) step(at stage) *level {
	c := *l
	c.at, c.items, c.itemsMade = at, nil, false
	if at == value && c.last != nil {
		if i, found := slices.BinarySearchFunc(c.seen, c.last, byKey); !found {
			c.sum += maphash.String(seed, c.last.Key)
			seen := make([]*Value, 0, len(c.seen)+1)
			c.seen = append(append(append(seen, c.seen[:i]...), c.last), c.seen[i:]...)
		}
		c.last, c.repeats = nil, false
	}
	return &c
}

// add returns l with one more value.
func (l *level) add(v *Value) *level {
	c := *l
	c.at, c.items, c.itemsMade = another, nil, false
	if c.watched && !c.object {
		c.compare(v)
	}
	if c.up != nil { // otherwise nothing compares the whole array
		if c.object {
			c.addMember(v)
		} else {
			c.parts = append(slices.Clip(c.parts), v)
			c.keep(func(m *Value) *Value {
				if c.n < len(m.parts) {
					return m.parts[c.n]
				}
				return nil
			}, v)
		}
	}
	c.n++
	return &c
}

// compare makes v the last item or name.
func (l *level) compare(v *Value) {
	l.last = v
	_, l.repeats = slices.BinarySearchFunc(l.seen, v, byKey)
	l.repeats = l.repeats || l.n >= limits.GrammarUniqueItems
}

func (l *level) addMember(v *Value) {
	if i := slices.Index(l.names, l.name); i >= 0 { // the last one counts
		l.parts = slices.Clone(l.parts)
		l.parts[i] = v
		l.matching = l.began
		for i, n := range l.names {
			l.keep(func(m *Value) *Value { return m.get(n) }, l.parts[i])
		}
		return
	}
	l.names, l.parts = append(slices.Clip(l.names), l.name), append(slices.Clip(l.parts), v)
	l.keep(func(m *Value) *Value { return m.get(l.name) }, v)
}

// keep keeps the matching values of which a part equals v.
func (l *level) keep(part func(*Value) *Value, v *Value) {
	var kept []*Value
	for _, m := range l.matching {
		if p := part(m); p != nil && p.Key == v.Key {
			kept = append(kept, m)
		}
	}
	l.matching = kept
}

// whole returns the value of a container that ends.
func (l *level) whole() *Value {
	if l.object {
		return Object(l.names, l.parts)
	}
	return Array(l.parts)
}
