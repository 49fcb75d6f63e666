package jinja

import (
	"math"
	"math/big"
	"strings"
)

// equal returns Python's a == b.
func (r *run) equal(a, b Value) (bool, error) { return r.equalDepth(a, b, 0) }

func (r *run) equalDepth(a, b Value, depth int) (bool, error) {
	if depth > r.limits.Depth {
		return false, raise("RecursionError", "maximum recursion depth exceeded in comparison")
	}
	switch x := a.(type) {
	case string:
		s, ok := b.(string)
		return ok && s == x, nil
	case nil:
		return b == nil, nil
	case int64:
		if y, ok := b.(int64); ok {
			return x == y, nil
		}
	case Bytes:
		y, ok := b.(Bytes)
		return ok && x == y, nil
	case *List:
		if y, ok := b.(*List); ok {
			return r.equalItems(x.Items, y.Items, depth)
		}
		return false, nil
	case *Tuple:
		if y, ok := b.(*Tuple); ok {
			return r.equalItems(x.Items, y.Items, depth)
		}
		return false, nil
	case *Dict:
		if y, ok := b.(*Dict); ok {
			return r.equalDicts(x, y, depth)
		}
		return false, nil
	case *Range:
		y, ok := b.(*Range)
		return ok && x.n == y.n && (x.n == 0 || x.start == y.start && (x.n == 1 || x.step == y.step)), nil
	case *undefined:
		_, ok := b.(*undefined)
		return ok, nil
	case *slice:
		y, ok := b.(*slice)
		if !ok {
			return false, nil
		}
		return r.equalItems([]Value{x.start, x.stop, x.step}, []Value{y.start, y.stop, y.step}, depth)
	case *dictView:
		if y, ok := b.(*dictView); ok && x.kind != "values" && y.kind != "values" {
			return r.equalViews(x, y, depth)
		}
		return a == b, nil
	}
	if isNumber(a) && isNumber(b) {
		c, ok := compareNumbers(a, b)
		return ok && c == 0, nil
	}
	if isNumber(a) || isNumber(b) {
		return false, nil
	}
	switch b.(type) {
	case string, Bytes, *List, *Tuple, *Dict, *Range, *undefined, nil:
		return false, nil
	}
	return a == b, nil // by identity
}

func (r *run) equalItems(a, b []Value, depth int) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	for i := range a {
		if same(a[i], b[i]) {
			continue
		}
		if err := r.tick(); err != nil {
			return false, err
		}
		if eq, err := r.equalDepth(a[i], b[i], depth+1); !eq || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (r *run) equalDicts(a, b *Dict, depth int) (bool, error) {
	if a.Len() != b.Len() {
		return false, nil
	}
	for i, k := range a.keys {
		if err := r.tick(); err != nil {
			return false, err
		}
		v, ok, _ := b.get(k)
		if !ok {
			return false, nil
		}
		if eq, err := r.equalDepth(a.values[i], v, depth+1); !eq || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (r *run) equalViews(a, b *dictView, depth int) (bool, error) {
	if a.d.Len() != b.d.Len() {
		return false, nil
	}
	for i := range a.d.keys {
		found, err := r.contains(b, a.at(i))
		if !found || err != nil {
			return false, err
		}
	}
	return true, nil
}

// same returns Python's a is b as far as immutable values allow: equal small constants are the same object.
func same(a, b Value) bool {
	switch x := a.(type) {
	case float64:
		y, ok := b.(float64)
		return ok && (x == y || math.IsNaN(x) && math.IsNaN(y))
	case *big.Int:
		y, ok := b.(*big.Int)
		return ok && x == y
	case *Tuple:
		y, ok := b.(*Tuple)
		return ok && (x == y || len(x.Items) == 0 && len(y.Items) == 0)
	}
	switch b.(type) {
	case float64:
		return false
	}
	return a == b
}

// compareNumbers compares two numbers exactly. It returns false if one is NaN.
func compareNumbers(a, b Value) (int, bool) {
	x, okX := a.(float64)
	y, okY := b.(float64)
	switch {
	case okX && math.IsNaN(x) || okY && math.IsNaN(y):
		return 0, false
	case okX && okY:
		switch {
		case x < y:
			return -1, true
		case x > y:
			return 1, true
		}
		return 0, true
	case okX:
		c, ok := compareNumbers(b, a)
		return -c, ok
	case okY:
		i, _ := integer(a)
		if math.IsInf(y, 0) {
			if y > 0 {
				return -1, true
			}
			return 1, true
		}
		return new(big.Float).SetInt(i).Cmp(big.NewFloat(y)), true
	}
	if i, ok := smallInt(a); ok {
		if j, ok := smallInt(b); ok {
			switch {
			case i < j:
				return -1, true
			case i > j:
				return 1, true
			}
			return 0, true
		}
	}
	i, _ := integer(a)
	j, _ := integer(b)
	return i.Cmp(j), true
}

// ordered returns Python's a op b for <, <=, > and >=.
func (r *run) ordered(op string, a, b Value, depth int) (bool, error) {
	if depth > r.limits.Depth {
		return false, raise("RecursionError", "maximum recursion depth exceeded in comparison")
	}
	for _, v := range []Value{a, b} {
		if u, ok := v.(*undefined); ok {
			return false, u.fail()
		}
	}
	if isNumber(a) && isNumber(b) {
		c, ok := compareNumbers(a, b)
		return ok && holds(op, c), nil
	}
	x, okX := a.(string)
	y, okY := b.(string)
	if okX && okY {
		return holds(op, strings.Compare(x, y)), nil // UTF-8 sorts in code point order
	}
	switch x := a.(type) {
	case Bytes:
		if y, ok := b.(Bytes); ok {
			return holds(op, strings.Compare(string(x), string(y))), nil
		}
	case *List:
		if y, ok := b.(*List); ok {
			return r.orderedItems(op, x.Items, y.Items, depth)
		}
	case *Tuple:
		if y, ok := b.(*Tuple); ok {
			return r.orderedItems(op, x.Items, y.Items, depth)
		}
	case *dictView:
		if y, ok := b.(*dictView); ok && x.kind != "values" && y.kind != "values" {
			return r.orderedViews(op, x, y)
		}
	}
	return false, typeError("'%s' not supported between instances of '%s' and '%s'", op, typeName(a), typeName(b))
}

// orderedViews compares the keys or items of two dicts as sets.
func (r *run) orderedViews(op string, a, b *dictView) (bool, error) {
	if op == ">" || op == ">=" {
		a, b = b, a
	}
	if a.d.Len() > b.d.Len() || (op == "<" || op == ">") && a.d.Len() == b.d.Len() {
		return false, nil
	}
	for i := range a.d.keys {
		if ok, err := r.contains(b, a.at(i)); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func holds(op string, c int) bool {
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

func (r *run) orderedItems(op string, a, b []Value, depth int) (bool, error) {
	for i := 0; i < len(a) && i < len(b); i++ {
		if err := r.tick(); err != nil {
			return false, err
		}
		if same(a[i], b[i]) {
			continue
		}
		eq, err := r.equalDepth(a[i], b[i], depth+1)
		if err != nil {
			return false, err
		}
		if !eq {
			return r.ordered(op, a[i], b[i], depth+1)
		}
	}
	return holds(op, len(a)-len(b)), nil
}

// contains returns Python's v in seq.
func (r *run) contains(seq, v Value) (bool, error) {
	switch s := seq.(type) {
	case string:
		needle, ok := v.(string)
		if !ok {
			return false, typeError("'in <string>' requires string as left operand, not %s", typeName(v))
		}
		r.work(len(s) / 64)
		return strings.Contains(s, needle), nil
	case Bytes:
		if needle, ok := v.(Bytes); ok {
			return strings.Contains(string(s), string(needle)), nil
		}
		i, ok := smallInt(v)
		if !ok {
			return false, typeError("a bytes-like object is required, not '%s'", typeName(v))
		}
		if i < 0 || i > 255 {
			return false, valueError("byte must be in range(0, 256)")
		}
		return strings.IndexByte(string(s), byte(i)) >= 0, nil
	case *Dict:
		_, ok, err := s.get(v)
		return ok, err
	case *dictView:
		switch s.kind {
		case "keys":
			_, ok, err := s.d.get(v)
			return ok, err
		case "items":
			t, ok := v.(*Tuple)
			if !ok || len(t.Items) != 2 {
				return false, nil
			}
			x, ok, err := s.d.get(t.Items[0])
			if !ok || err != nil {
				return false, err
			}
			return r.equal(x, t.Items[1])
		}
	case *Range:
		if i, ok := smallInt(v); ok {
			if s.n == 0 {
				return false, nil
			}
			at := (i - s.start) / s.step
			return at >= 0 && at < s.n && s.start+at*s.step == i, nil
		}
	}
	it, err := iterate(seq)
	if err != nil {
		return false, typeError("argument of type '%s' is not iterable", typeName(seq))
	}
	for {
		x, ok, err := it.step()
		if !ok || err != nil {
			return false, err
		}
		if err := r.tick(); err != nil {
			return false, err
		}
		if same(x, v) {
			return true, nil
		}
		if eq, err := r.equal(x, v); eq || err != nil {
			return eq, err
		}
	}
}

// compare returns Python's a op b.
func (r *run) compare(op string, a, b Value) (bool, error) {
	switch op {
	case "==":
		return r.equal(a, b)
	case "!=":
		eq, err := r.equal(a, b)
		return !eq, err
	case "in":
		return r.contains(b, a)
	case "not in":
		in, err := r.contains(b, a)
		return !in, err
	}
	return r.ordered(op, a, b, 0)
}
