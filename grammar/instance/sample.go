package instance

import "github.com/ingotml/ingot/grammar/expr"

// Amount says whether an expression has a number of values.
type Amount int

const (
	Unknown Amount = iota
	Few
	Plenty
)

// Sample reports whether the texts of e are at least n values. It writes texts until they suffice.
func Sample(e *expr.Expr, n int) Amount {
	s := &sampler{want: n, found: map[string]bool{}, left: maxSamples}
	s.write(e, s.finish)
	switch {
	case len(s.found) >= n:
		return Plenty
	case s.open:
		return Unknown
	}
	return Few
}

// Bounds of a sampler: its steps, and the length of a text.
const (
	maxSamples = 200_000
	maxSample  = 2000
)

// sampler writes texts of an expression until it has found as many values as it wants.
type sampler struct {
	want  int
	found map[string]bool // keys of values
	text  []byte
	left  int
	open  bool // some texts were left out
}

// finish notes the value of a text, and reports whether to go on.
func (s *sampler) finish() bool {
	v, err := Read(s.text)
	if err != nil || !distinct(v) { // items that must differ are not compared here
		s.open = true
		return true
	}
	s.found[itemOf(v).Key] = true
	return len(s.found) < s.want
}

// write calls then after each text of e, until then returns false.
func (s *sampler) write(e *expr.Expr, then func() bool) bool {
	if s.left--; s.left < 0 || len(s.text) > maxSample || e == nil {
		s.open = true
		return s.left >= 0
	}
	length := len(s.text)
	defer func() { s.text = s.text[:length] }()
	switch e.Op {
	case expr.OpSeq:
		return s.sequence(e.Subs, then)
	case expr.OpAlt:
		for _, sub := range e.Subs {
			if !s.write(sub, then) {
				return false
			}
		}
		return true
	case expr.OpText:
		s.text = append(s.text, e.Text...)
		return then()
	case expr.OpSet:
		return s.bytes(e.Set, then)
	case expr.OpRepeat:
		return s.repeat(e, 0, then)
	case expr.OpCall:
		return s.write(e.Rule.Body, then)
	case expr.OpGraph:
		return s.state(e.Graph, 0, then)
	case expr.OpCompared, expr.OpDistinct:
		return s.write(e.Subs[0], then)
	}
	s.open = true
	return true
}

func (s *sampler) sequence(parts []*expr.Expr, then func() bool) bool {
	if len(parts) == 0 {
		return then()
	}
	return s.write(parts[0], func() bool { return s.sequence(parts[1:], then) })
}

// bytes tries as many bytes of a set as values are wanted: each leads to other values.
func (s *sampler) bytes(set expr.ByteSet, then func() bool) bool {
	n := 0
	for b := range 256 {
		if !set.Has(byte(b)) {
			continue
		}
		if n++; n > s.want+1 {
			s.open = true
			return true
		}
		s.text = append(s.text, byte(b))
		if !then() {
			return false
		}
		s.text = s.text[:len(s.text)-1]
	}
	return true
}

func (s *sampler) repeat(e *expr.Expr, n int, then func() bool) bool {
	if n >= e.Min && !then() {
		return false
	}
	if n == e.Max {
		return true
	}
	return s.write(e.Subs[0], func() bool { return s.repeat(e, n+1, then) })
}

// state writes the texts from a state of a graph on.
func (s *sampler) state(g *expr.Graph, at int32, then func() bool) bool {
	if s.left--; s.left < 0 || len(s.text) > maxSample {
		s.open = true
		return s.left >= 0
	}
	if g.States[at].Accept && !then() {
		return false
	}
	for _, e := range g.States[at].Edges {
		if !s.bytes(e.Set, func() bool { return s.state(g, e.To, then) }) {
			return false
		}
	}
	for _, call := range g.States[at].Calls {
		if !s.write(call.Rule.Body, func() bool { return s.state(g, call.To, then) }) {
			return false
		}
	}
	return true
}

// distinct reports whether the items of all arrays in v differ.
func distinct(v any) bool {
	switch v := v.(type) {
	case []any:
		seen := map[string]bool{}
		for _, item := range v {
			key := itemOf(item).Key
			if seen[key] || !distinct(item) {
				return false
			}
			seen[key] = true
		}
	case []member:
		for _, m := range v {
			if !distinct(m.value) {
				return false
			}
		}
	}
	return true
}
