package value

import (
	"math/big"
)

// Unsupported returns the TypeError of an operator that does not take these operands.
func Unsupported(op string, l, r Value) error {
	return TypeError("unsupported operand type(s) for %s: '%s' and '%s'", op, TypeName(l), TypeName(r))
}

// Binary returns Python's a op b, except for % of a string, which is a method of str.
func (r *Run) Binary(op string, a, b Value) (Value, error) {
	if u, ok := a.(*Undefined); ok {
		return nil, u.Fail()
	}
	if u, ok := b.(*Undefined); ok {
		return nil, u.Fail()
	}
	if IsNumber(a) && IsNumber(b) {
		return r.arith(op, a, b)
	}
	switch op {
	case "+":
		return r.Add(a, b)
	case "*":
		return r.multiply(a, b)
	}
	return nil, Unsupported(op, a, b)
}

// Add returns Python's a + b for strings and sequences.
func (r *Run) Add(a, b Value) (Value, error) {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			if err := r.Alloc(len(x) + len(y)); err != nil {
				return nil, err
			}
			return x + y, nil
		}
		return nil, TypeError("can only concatenate str (not \"%s\") to str", TypeName(b))
	case *List:
		if y, ok := b.(*List); ok {
			items, err := r.Concat(x.Items, y.Items)
			return &List{items}, err
		}
		return nil, TypeError("can only concatenate list (not \"%s\") to list", TypeName(b))
	case *Tuple:
		if y, ok := b.(*Tuple); ok {
			items, err := r.Concat(x.Items, y.Items)
			return &Tuple{Items: items}, err
		}
		return nil, TypeError("can only concatenate tuple (not \"%s\") to tuple", TypeName(b))
	}
	return nil, Unsupported("+", a, b)
}

// Concat returns the items of both slices in a new one.
func (r *Run) Concat(a, b []Value) ([]Value, error) {
	if err := r.Alloc((len(a) + len(b)) * Overhead); err != nil {
		return nil, err
	}
	return append(append(make([]Value, 0, len(a)+len(b)), a...), b...), nil
}

// multiply repeats a sequence.
func (r *Run) multiply(a, b Value) (Value, error) {
	seq, times := a, b
	if IsNumber(a) {
		seq, times = b, a
	}
	if _, ok := Integer(times); !ok {
		switch seq.(type) {
		case string, *List, *Tuple:
			return nil, TypeError("can't multiply sequence by non-int of type '%s'", TypeName(times))
		}
		return nil, Unsupported("*", a, b)
	}
	n, ok := SmallInt(times)
	if !ok {
		return nil, Raise("OverflowError", "cannot fit 'int' into an index-sized integer")
	}
	n = max(n, 0)
	switch s := seq.(type) {
	case string:
		t, err := r.Repeat(s, n)
		return t, err
	case *List:
		items, err := r.repeatItems(s.Items, n)
		return &List{items}, err
	case *Tuple:
		items, err := r.repeatItems(s.Items, n)
		return &Tuple{Items: items}, err
	}
	return nil, Unsupported("*", a, b)
}

// Repeat returns s n times.
func (r *Run) Repeat(s string, n int64) (string, error) {
	if err := r.AllocTimes(len(s), n); err != nil {
		return "", err
	}
	b := make([]byte, 0, len(s)*int(n)*min(1, len(s)))
	for ; n > 0 && s != ""; n-- {
		b = append(b, s...)
	}
	return string(b), nil
}

func (r *Run) repeatItems(items []Value, n int64) ([]Value, error) {
	if err := r.AllocTimes(len(items)*Overhead, n); err != nil {
		return nil, err
	}
	var all []Value
	for ; n > 0 && len(items) > 0; n-- {
		all = append(all, items...)
	}
	return all, nil
}

// Unary returns Python's +v or -v.
func (r *Run) Unary(op byte, v Value) (Value, error) {
	switch x := v.(type) {
	case *Undefined:
		return nil, x.Fail()
	case float64:
		if op == '-' {
			return -x, nil
		}
		return x, nil
	}
	i, ok := Integer(v)
	if !ok {
		return nil, TypeError("bad operand type for unary %c: '%s'", op, TypeName(v))
	}
	if op == '-' {
		return NormInt(new(big.Int).Neg(i)), nil
	}
	return NormInt(i), nil
}
