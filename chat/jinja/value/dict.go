package value

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
)

// Dict is Python's dict: it keeps the insertion order of keys. It is filled with Set and read-only once shared;
// templates cannot change it.
type Dict struct {
	keys, values []Value
	hashes       []any       // hash keys of the keys, while the dict is small
	index        map[any]int // by hash key; nil while the dict is small
}

// smallDict is the number of keys up to which a linear search is faster than a map.
const smallDict = 8

// NewDict returns an empty dict.
func NewDict() *Dict { return &Dict{} }

// Len returns the number of entries.
func (d *Dict) Len() int {
	if d == nil {
		return 0
	}
	return len(d.keys)
}

// Set adds an entry, or replaces the value of an existing key in place. It fails if the key is not hashable (a list or
// dict), or a tuple that exceeds a limit.
func (d *Dict) Set(key, value Value) error {
	k, err := HashKey(key)
	if err != nil {
		return err
	}
	if i := d.find(k); i >= 0 {
		d.values[i] = value
		return nil
	}
	d.keys, d.values = append(d.keys, key), append(d.values, value)
	if d.index != nil {
		d.index[k] = len(d.keys) - 1
		return nil
	}
	if d.hashes = append(d.hashes, k); len(d.keys) > smallDict {
		d.index = make(map[any]int, 2*len(d.keys))
		for i, k := range d.hashes {
			d.index[k] = i
		}
		d.hashes = nil
	}
	return nil
}

// Put is Set for a string key, which cannot fail.
func (d *Dict) Put(key string, value Value) { _ = d.Set(key, value) } // strings are hashable

// Get returns the value of a string key.
func (d *Dict) Get(key string) (Value, bool) {
	if d == nil {
		return nil, false
	}
	if d.index == nil {
		for i, k := range d.keys {
			if s, ok := k.(string); ok && s == key {
				return d.values[i], true
			}
		}
		return nil, false
	}
	i, ok := d.index[key]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

// Keys returns the keys in order, which the caller must not modify.
func (d *Dict) Keys() []Value { return d.keys }

// Values returns the values in the order of the keys. The caller must not modify them.
func (d *Dict) Values() []Value { return d.values }

// Each calls fn for each entry in order until fn returns false.
func (d *Dict) Each(fn func(key, value Value) bool) {
	for i, k := range d.keys {
		if !fn(k, d.values[i]) {
			return
		}
	}
}

// Lookup returns the value of any key. It returns a TypeError if the key is not hashable.
func (d *Dict) Lookup(key Value) (Value, bool, error) {
	if s, ok := key.(string); ok {
		v, found := d.Get(s)
		return v, found, nil
	}
	k, err := HashKey(key)
	if err != nil {
		return nil, false, err
	}
	if i := d.find(k); i >= 0 {
		return d.values[i], true, nil
	}
	return nil, false, nil
}

func (d *Dict) find(k any) int {
	if d.index != nil {
		if i, ok := d.index[k]; ok {
			return i
		}
		return -1
	}
	for i, h := range d.hashes {
		if h == k {
			return i
		}
	}
	return -1
}

// lookup is Lookup, counted.
func (r *Run) lookup(d *Dict, key Value) (Value, bool, error) {
	if s, ok := key.(string); ok {
		r.readFast(len(s) * min(d.Len(), smallDict)) // they may be as long, or it is hashed
	} else {
		r.Read(key)
	}
	return d.Lookup(key)
}

// Clone returns a copy with the same keys and values.
func (d *Dict) Clone() *Dict {
	c := &Dict{keys: slices.Clone(d.keys), values: slices.Clone(d.values), hashes: slices.Clone(d.hashes)}
	if d.index != nil {
		c.index = maps.Clone(d.index)
	}
	return c
}

// Hash keys of values other than strings and numbers.
type (
	noneKey      struct{}
	undefinedKey struct{}
	bigKey       string
	tupleKey     string
	rangeKey     [3]int64
)

// HashKey returns a Go map key that is equal for equal Python values: 1, 1.0 and True have the same key.
func HashKey(v Value) (any, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case nil:
		return noneKey{}, nil
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case int64:
		return v, nil
	case *big.Int:
		return bigKey(v.Text(16)), nil
	case float64:
		if v == math.Trunc(v) && !math.IsInf(v, 0) {
			b, _ := new(big.Float).SetFloat64(v).Int(nil)
			return HashKey(NormInt(b))
		}
		return v, nil
	case *Undefined:
		return undefinedKey{}, nil
	case *Tuple:
		left := maxTupleKey
		return v.hashKey(&left)
	case *Range:
		if v.N == 0 {
			return rangeKey{}, nil
		}
		if v.N == 1 {
			return rangeKey{1, v.Start}, nil
		}
		return rangeKey{v.N, v.Start, v.Step}, nil
	case *List, *Dict, *Slice, *DictView:
		return nil, TypeError("unhashable type: '%s'", TypeName(v))
	}
	return v, nil // by identity
}

// maxTupleKey bounds the bytes of a tuple's hash key.
const maxTupleKey = 4096

// hashKey returns the key of a tuple. left is the number of bytes that remain of maxTupleKey.
func (t *Tuple) hashKey(left *int) (any, error) {
	var b strings.Builder
	for _, i := range t.Items {
		var k any
		var err error
		if *left -= 16; *left < 0 {
			return nil, LimitError("a tuple as a key has more than %d bytes", maxTupleKey)
		}
		if inner, ok := i.(*Tuple); ok {
			k, err = inner.hashKey(left)
		} else {
			k, err = HashKey(i)
		}
		if err != nil {
			return nil, err
		}
		text := fmt.Sprint(k)
		if *left -= len(text); *left < 0 {
			return nil, LimitError("a tuple as a key has more than %d bytes", maxTupleKey)
		}
		fmt.Fprintf(&b, "%T:%d:%s,", k, len(text), text)
	}
	return tupleKey(b.String()), nil
}

// DictView is the result of keys(), values() and items().
type DictView struct {
	Dict *Dict
	Kind string // keys, values, items
}

func (v *DictView) typeName() string { return "dict_" + v.Kind }

func (v *DictView) at(i int) Value {
	switch v.Kind {
	case "keys":
		return v.Dict.keys[i]
	case "values":
		return v.Dict.values[i]
	}
	return NewTuple(v.Dict.keys[i], v.Dict.values[i])
}
