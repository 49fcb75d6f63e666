package value

import (
	"math"
	"math/big"
	"strings"
)

// Equal returns Python's a == b.
func (r *Run) Equal(a, b Value) (bool, error) { return r.equalDepth(a, b, 0) }

func (r *Run) equalDepth(a, b Value, depth int) (bool, error) {
	if depth > r.Limits.Depth {
		return false, Raise("RecursionError", "maximum recursion depth exceeded in comparison")
	}
	switch x := a.(type) {
	case string:
		s, ok := b.(string)
		if !ok || len(s) != len(x) {
			return false, nil
		}
		r.readFast(len(x))
		return s == x, nil
	case nil:
		return b == nil, nil
	case int64:
		if y, ok := b.(int64); ok {
			return x == y, nil
		}
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
		return ok && x.N == y.N && (x.N == 0 || x.Start == y.Start && (x.N == 1 || x.Step == y.Step)), nil
	case *Undefined:
		_, ok := b.(*Undefined)
		return ok, nil
	case *Slice:
		y, ok := b.(*Slice)
		if !ok {
			return false, nil
		}
		return r.equalItems([]Value{x.Start, x.Stop, x.Step}, []Value{y.Start, y.Stop, y.Step}, depth)
	case *DictView:
		if y, ok := b.(*DictView); ok && x.Kind != "values" && y.Kind != "values" {
			return r.equalViews(x, y, depth)
		}
		return a == b, nil
	}
	if IsNumber(a) && IsNumber(b) {
		r.Read(a, b)
		c, ok := CompareNumbers(a, b)
		return ok && c == 0, nil
	}
	if IsNumber(a) || IsNumber(b) {
		return false, nil
	}
	switch b.(type) {
	case string, *List, *Tuple, *Dict, *Range, *Undefined, nil:
		return false, nil
	}
	return a == b, nil // by identity
}

func (r *Run) equalItems(a, b []Value, depth int) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	for i := range a {
		if Same(a[i], b[i]) {
			continue
		}
		if err := r.Tick(); err != nil {
			return false, err
		}
		if eq, err := r.equalDepth(a[i], b[i], depth+1); !eq || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (r *Run) equalDicts(a, b *Dict, depth int) (bool, error) {
	if a.Len() != b.Len() {
		return false, nil
	}
	for i, k := range a.keys {
		if err := r.Tick(); err != nil {
			return false, err
		}
		v, ok, _ := r.lookup(b, k)
		if !ok {
			return false, nil
		}
		if eq, err := r.equalDepth(a.values[i], v, depth+1); !eq || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (r *Run) equalViews(a, b *DictView, depth int) (bool, error) {
	if a.Dict.Len() != b.Dict.Len() {
		return false, nil
	}
	for i := range a.Dict.keys {
		found, err := r.Contains(b, a.at(i))
		if !found || err != nil {
			return false, err
		}
	}
	return true, nil
}

// Same returns Python's a is b as far as immutable values allow: equal small constants are the same object.
func Same(a, b Value) bool {
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

// CompareNumbers compares two numbers exactly. It returns false if one is NaN.
func CompareNumbers(a, b Value) (int, bool) {
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
		c, ok := CompareNumbers(b, a)
		return -c, ok
	case okY:
		i, _ := Integer(a)
		if math.IsInf(y, 0) {
			if y > 0 {
				return -1, true
			}
			return 1, true
		}
		return new(big.Float).SetInt(i).Cmp(big.NewFloat(y)), true
	}
	if i, ok := SmallInt(a); ok {
		if j, ok := SmallInt(b); ok {
			switch {
			case i < j:
				return -1, true
			case i > j:
				return 1, true
			}
			return 0, true
		}
	}
	i, _ := Integer(a)
	j, _ := Integer(b)
	return i.Cmp(j), true
}

// Ordered returns Python's a op b for <, <=, > and >=.
func (r *Run) Ordered(op string, a, b Value, depth int) (bool, error) {
	if depth > r.Limits.Depth {
		return false, Raise("RecursionError", "maximum recursion depth exceeded in comparison")
	}
	for _, v := range []Value{a, b} {
		if u, ok := v.(*Undefined); ok {
			return false, u.Fail()
		}
	}
	if IsNumber(a) && IsNumber(b) {
		r.Read(a, b)
		c, ok := CompareNumbers(a, b)
		return ok && holds(op, c), nil
	}
	x, okX := a.(string)
	y, okY := b.(string)
	if okX && okY {
		r.readFast(min(len(x), len(y)))
		return holds(op, strings.Compare(x, y)), nil // UTF-8 sorts in code point order
	}
	switch x := a.(type) {
	case *List:
		if y, ok := b.(*List); ok {
			return r.orderedItems(op, x.Items, y.Items, depth)
		}
	case *Tuple:
		if y, ok := b.(*Tuple); ok {
			return r.orderedItems(op, x.Items, y.Items, depth)
		}
	case *DictView:
		if y, ok := b.(*DictView); ok && x.Kind != "values" && y.Kind != "values" {
			return r.orderedViews(op, x, y)
		}
	}
	return false, TypeError("'%s' not supported between instances of '%s' and '%s'", op, TypeName(a), TypeName(b))
}

// orderedViews compares the keys or items of two dicts as sets.
func (r *Run) orderedViews(op string, a, b *DictView) (bool, error) {
	if op == ">" || op == ">=" {
		a, b = b, a
	}
	if a.Dict.Len() > b.Dict.Len() || (op == "<" || op == ">") && a.Dict.Len() == b.Dict.Len() {
		return false, nil
	}
	for i := range a.Dict.keys {
		if ok, err := r.Contains(b, a.at(i)); !ok || err != nil {
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

func (r *Run) orderedItems(op string, a, b []Value, depth int) (bool, error) {
	for i := 0; i < len(a) && i < len(b); i++ {
		if err := r.Tick(); err != nil {
			return false, err
		}
		if Same(a[i], b[i]) {
			continue
		}
		eq, err := r.equalDepth(a[i], b[i], depth+1)
		if err != nil {
			return false, err
		}
		if !eq {
			return r.Ordered(op, a[i], b[i], depth+1)
		}
	}
	return holds(op, len(a)-len(b)), nil
}

// Contains returns Python's v in seq.
func (r *Run) Contains(seq, v Value) (bool, error) {
	switch s := seq.(type) {
	case string:
		needle, ok := v.(string)
		if !ok {
			return false, TypeError("'in <string>' requires string as left operand, not %s", TypeName(v))
		}
		r.Read(s)
		return strings.Contains(s, needle), nil
	case *Dict:
		_, ok, err := r.lookup(s, v)
		return ok, err
	case *DictView:
		switch s.Kind {
		case "keys":
			_, ok, err := r.lookup(s.Dict, v)
			return ok, err
		case "items":
			t, ok := v.(*Tuple)
			if !ok || len(t.Items) != 2 {
				return false, nil
			}
			x, ok, err := r.lookup(s.Dict, t.Items[0])
			if !ok || err != nil {
				return false, err
			}
			return r.Equal(x, t.Items[1])
		}
	case *Range:
		if i, ok := SmallInt(v); ok {
			if s.N == 0 {
				return false, nil
			}
			at := (i - s.Start) / s.Step
			return at >= 0 && at < s.N && s.Start+at*s.Step == i, nil
		}
	}
	it, err := Iterate(seq)
	if err != nil {
		return false, TypeError("argument of type '%s' is not iterable", TypeName(seq))
	}
	for {
		x, ok, err := it.Step()
		if !ok || err != nil {
			return false, err
		}
		if err := r.Tick(); err != nil {
			return false, err
		}
		if Same(x, v) {
			return true, nil
		}
		if eq, err := r.Equal(x, v); eq || err != nil {
			return eq, err
		}
	}
}

// Compare returns Python's a op b.
func (r *Run) Compare(op string, a, b Value) (bool, error) {
	switch op {
	case "==":
		return r.Equal(a, b)
	case "!=":
		eq, err := r.Equal(a, b)
		return !eq, err
	case "in":
		return r.Contains(b, a)
	case "not in":
		in, err := r.Contains(b, a)
		return !in, err
	}
	return r.Ordered(op, a, b, 0)
}
