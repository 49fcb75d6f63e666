package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/jsontext"
	"github.com/ingotml/ingot/limits"
)

// byteVocabulary has one token per byte: a text is accepted token by token exactly if its bytes are.
var byteVocabulary = sync.OnceValue(func() *Vocabulary {
	tokens := make([][]byte, 256)
	for b := range tokens {
		tokens[b] = []byte{byte(b)}
	}
	return NewVocabulary(tokens, nil)
})

// AcceptsJSON reports whether the grammar matches some text of a JSON value: its properties in any order that the
// grammar has, its numbers and strings in any spelling. White space in instance does not matter. An instance that is
// not JSON is ErrInvalid. The search is bounded by limits.GrammarChecks steps; beyond it the error is ErrLimit.
func (g *Grammar) AcceptsJSON(instance []byte) (bool, error) {
	root, err := readInstance(instance)
	if err != nil {
		return false, err
	}
	a := g.automaton(byteVocabulary())
	a.mu.Lock()
	defer a.mu.Unlock()
	r := &reader{a: a, orders: g.orders, spelled: g.spelled, left: limits.GrammarChecks}
	ends := r.value([]*state{a.start()}, root, false)
	if r.left < 0 {
		return false, expr.Errorf(ErrLimit, "the instance takes more than %d steps to check", limits.GrammarChecks)
	}
	return slices.ContainsFunc(ends, func(s *state) bool { return s.accept }), nil
}

// instance is a JSON value: nil, bool, json.Number, string, []any or []member.
type member struct {
	name  string
	value any
}

func readInstance(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := readInstanceValue(d, 0)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = fmt.Errorf("unexpected data at byte %d", d.InputOffset())
		}
	}
	if err != nil {
		return nil, expr.Errorf(ErrInvalid, "the instance is not JSON: %v", err)
	}
	return v, nil
}

func readInstanceValue(d *json.Decoder, depth int) (any, error) {
	if depth > 10*limits.GrammarNesting {
		return nil, fmt.Errorf("nested more than %d levels deep", 10*limits.GrammarNesting)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		items := []any{}
		for d.More() {
			item, err := readInstanceValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		_, err := d.Token()
		return items, err
	case json.Delim('{'):
		members := []member{}
		at := map[string]int{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := readInstanceValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			key := name.(string)
			if i, ok := at[key]; ok { // the last one counts, as in most parsers
				members[i].value = value
				continue
			}
			at[key] = len(members)
			members = append(members, member{key, value})
		}
		_, err := d.Token()
		return members, err
	}
	return t, nil
}

// reader follows the texts of one instance through an automaton.
type reader struct {
	a       *automaton
	orders  [][]string
	spelled bool // a decimal is not spelled as an integer
	left    int  // steps until the search gives up
}

// text returns the states after b from any of the states in from.
func (r *reader) text(from []*state, b string) []*state { return r.ending(from, b, false) }

// ending is text if an item may end in b; repeats: it repeats one before it.
func (r *reader) ending(from []*state, b string, repeats bool) []*state {
	var out []*state
	for _, s := range from {
		r.left -= len(b)
		if r.left < 0 {
			return nil
		}
		if repeats {
			s = r.a.afterRepeated(s, []byte(b))
		} else {
			s = r.a.after(s, []byte(b))
		}
		if s != r.a.dead && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func join(a, b []*state) []*state {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// value returns the states after all texts of v; repeats: it is an item that repeats one before it.
func (r *reader) value(from []*state, v any, repeats bool) (out []*state) {
	if len(from) == 0 {
		return nil
	}
	switch v := v.(type) {
	case nil:
		return r.ending(from, "null", repeats)
	case bool:
		return r.ending(from, strconv.FormatBool(v), repeats)
	case json.Number:
		for _, spelling := range spellings(v.String(), r.spelled) {
			out = join(out, r.ending(from, spelling, repeats))
		}
		return out
	case string:
		return r.string(from, v, repeats)
	case []any:
		at := r.text(from, "[")
		again := r.repeated(v)
		for i, item := range v {
			if i > 0 {
				at = r.text(at, ", ")
			}
			at = r.value(at, item, again != nil && again[i])
		}
		return r.ending(at, "]", repeats)
	case []member:
		for _, s := range r.text(from, "{") {
			out = join(out, r.object(s, v, repeats))
		}
	}
	return out
}

// string follows all spellings of a string, character by character.
func (r *reader) string(from []*state, s string, repeats bool) []*state {
	at := r.text(from, `"`)
	for _, c := range s {
		var next []*state
		for _, spelling := range jsontext.Spellings(c) {
			next = join(next, r.text(at, spelling))
		}
		if at = next; len(at) == 0 {
			return nil
		}
	}
	return r.ending(at, `"`, repeats)
}

// objectReader searches for the orders of an object's members that the automaton accepts.
type objectReader struct {
	*reader
	members []member
	made    map[memberAt][]*state
	seen    map[objectState]bool
	visits  int // until the search through all orders gives up
	repeats bool
}

type memberAt struct {
	from *state
	i    int
}

type objectState struct {
	at   *state
	used string
}

// Bounds of the search for an order: the schema's lists that are tried, and the steps through other orders.
const (
	maxOrders = 12
	maxVisits = 500
)

// object returns the states after the members and the end of an object.
func (r *reader) object(s *state, members []member, repeats bool) []*state {
	o := &objectReader{reader: r, members: members, made: map[memberAt][]*state{}, seen: map[objectState]bool{},
		visits: maxVisits, repeats: repeats}
	for _, order := range o.likely() {
		at := []*state{s}
		for n, i := range order {
			if n > 0 {
				at = r.text(at, ", ")
			}
			var next []*state
			for _, from := range at {
				next = join(next, o.member(from, i))
			}
			at = next
		}
		if ends := r.ending(at, "}", repeats); len(ends) > 0 {
			return ends
		}
	}
	return o.search(s, make([]bool, len(members)), len(members))
}

// likely returns the orders of the members in the schema's lists that have most of them: listed members first, then the
// others.
func (o *objectReader) likely() (orders [][]int) {
	given := make([]int, len(o.members))
	for i := range given {
		given[i] = i
	}
	orders = append(orders, given)
	index := map[string]int{}
	for i, m := range o.members {
		index[m.name] = i
	}
	type scored struct {
		order []int
		has   int
	}
	var all []scored
	for _, names := range o.orders {
		var order []int
		listed := make([]bool, len(o.members))
		for _, name := range names {
			if i, ok := index[name]; ok {
				order = append(order, i)
				listed[i] = true
			}
		}
		if len(order) < 1 {
			continue
		}
		has := len(order)
		for i := range o.members {
			if !listed[i] {
				order = append(order, i)
			}
		}
		if !slices.ContainsFunc(all, func(s scored) bool { return slices.Equal(s.order, order) }) {
			all = append(all, scored{order, has})
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return b.has - a.has })
	for _, s := range all[:min(len(all), maxOrders)] {
		orders = append(orders, s.order)
	}
	return orders
}

// member returns the states after one member.
func (o *objectReader) member(from *state, i int) []*state {
	k := memberAt{from, i}
	to, ok := o.made[k]
	if !ok {
		m := o.members[i]
		if to = o.text(o.string([]*state{from}, m.name, false), ": "); len(to) > 0 {
			to = o.value(to, m.value, false)
		}
		o.made[k] = to
	}
	return to
}

// search reads the unused members in every order that is possible from s, until one is found.
func (o *objectReader) search(s *state, used []bool, left int) []*state {
	if left == 0 {
		return o.ending([]*state{s}, "}", o.repeats)
	}
	var key strings.Builder
	for _, u := range used {
		key.WriteByte(map[bool]byte{true: '1', false: '0'}[u])
	}
	k := objectState{s, key.String()}
	if o.visits--; o.seen[k] || o.left < 0 || o.visits < 0 {
		return nil
	}
	o.seen[k] = true
	at := []*state{s}
	if left < len(o.members) {
		at = o.text(at, ", ")
	}
	for i := range o.members {
		if used[i] {
			continue
		}
		used[i] = true
		for _, from := range at {
			for _, next := range o.member(from, i) {
				if ends := o.search(next, used, left-1); len(ends) > 0 {
					used[i] = false
					return ends
				}
			}
		}
		used[i] = false
	}
	return nil
}

// spellings returns texts of a number: as given, and as an integer or a decimal if it is one of moderate length.
// spelled: an integer and a decimal are different numbers.
func spellings(text string, spelled bool) []string {
	out := []string{text}
	if len(text) > 400 {
		return out
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(text), "e"); ok {
		if n, err := strconv.Atoi(exponent); err != nil || n > 400 || n < -400 {
			return out
		}
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return out
	}
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	if r.IsInt() {
		if !spelled || !strings.Contains(text, ".") {
			add(r.Num().String())
		}
		add(r.Num().String() + ".0")
	}
	if places, exact := r.FloatPrec(); exact && places > 0 {
		add(r.FloatString(places))
	}
	return out
}
