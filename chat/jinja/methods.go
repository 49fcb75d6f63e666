package jinja

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Non-mutating methods of types other than str.
var (
	tupleMethods, listMethods, dictMethods, bytesMethods map[string]method
)

func init() {
	tupleMethods = map[string]method{"count": seqCount, "index": seqIndex}
	listMethods = map[string]method{"count": seqCount, "index": seqIndex, "copy": listCopy}
	dictMethods = map[string]method{
		"get": dictGet, "copy": dictCopy, "fromkeys": dictFromKeys,
		"keys": view("keys"), "values": view("values"), "items": view("items"),
	}
	bytesMethods = map[string]method{"decode": bytesDecode, "hex": bytesHex}
}

func seqCount(r *run, self Value, a *arguments) (Value, error) {
	v, err := a.bind("count", "/value")
	if err != nil {
		return nil, err
	}
	items, err := r.collect(self)
	if err != nil {
		return nil, err
	}
	n := int64(0)
	for _, x := range items {
		if err := r.tick(); err != nil {
			return nil, err
		}
		eq, err := r.equal(x, v[0])
		if err != nil {
			return nil, err
		}
		if eq {
			n++
		}
	}
	return n, nil
}

func seqIndex(r *run, self Value, a *arguments) (Value, error) {
	params := []string{"/value", "/start?", "/stop?"}
	if _, ok := self.(*Range); ok {
		params = params[:1]
	}
	v, err := a.bind("index", params...)
	if err != nil {
		return nil, err
	}
	items, err := r.collect(self)
	if err != nil {
		return nil, err
	}
	from, to := int64(0), int64(len(items))
	if len(v) > 1 {
		if from, err = needInt(v[1], 0); err != nil {
			return nil, err
		}
		if to, err = needInt(v[2], math.MaxInt64); err != nil {
			return nil, err
		}
	}
	n := int64(len(items))
	if from < 0 {
		from = max(from+n, 0)
	}
	if to < 0 {
		to += n
	}
	for i := from; i < min(to, n); i++ {
		if err := r.tick(); err != nil {
			return nil, err
		}
		eq, err := r.equal(items[i], v[0])
		if err != nil {
			return nil, err
		}
		if eq {
			return i, nil
		}
	}
	return nil, valueError("value is not in %s", typeName(self))
}

func listCopy(r *run, self Value, a *arguments) (Value, error) {
	if _, err := a.bind("copy"); err != nil {
		return nil, err
	}
	items, err := r.concat(self.(*List).Items, nil)
	return &List{items}, err
}

func dictGet(r *run, self Value, a *arguments) (Value, error) {
	v, err := a.bind("get", "/key", "/default?")
	if err != nil {
		return nil, err
	}
	x, ok, err := self.(*Dict).get(v[0])
	if ok || err != nil {
		return x, err
	}
	if v[1] == missing {
		return nil, nil
	}
	return v[1], nil
}

func dictCopy(r *run, self Value, a *arguments) (Value, error) {
	if _, err := a.bind("copy"); err != nil {
		return nil, err
	}
	d := self.(*Dict)
	return d.clone(), r.alloc(2 * d.Len() * valueSize)
}

func dictFromKeys(r *run, self Value, a *arguments) (Value, error) {
	v, err := a.bind("fromkeys", "/iterable", "/value?")
	if err != nil {
		return nil, err
	}
	items, err := r.collect(v[0])
	if err != nil {
		return nil, err
	}
	if v[1] == missing {
		v[1] = nil
	}
	d := NewDict()
	for _, k := range items {
		if err := d.Set(k, v[1]); err != nil {
			return nil, err
		}
	}
	return d, r.alloc(2 * d.Len() * valueSize)
}

func view(kind string) method {
	return func(r *run, self Value, a *arguments) (Value, error) {
		_, err := a.bind(kind)
		return &dictView{self.(*Dict), kind}, err
	}
}

func isDisjoint(r *run, self Value, a *arguments) (Value, error) {
	v, err := a.bind("isdisjoint", "/other")
	if err != nil {
		return nil, err
	}
	items, err := r.collect(v[0])
	if err != nil {
		return nil, err
	}
	for _, x := range items {
		if in, err := r.contains(self, x); in || err != nil {
			return !in, err
		}
	}
	return true, nil
}

func bytesDecode(r *run, self Value, a *arguments) (Value, error) {
	v, err := a.bind("decode", "encoding?", "errors?")
	if err != nil {
		return nil, err
	}
	s := string(self.(Bytes))
	if v[0] != missing {
		name, err := needText(v[0], "decode() argument 'encoding'")
		if err != nil {
			return nil, err
		}
		switch strings.ToLower(name) {
		case "latin-1", "latin1", "iso-8859-1":
			var b strings.Builder
			for i := 0; i < len(s); i++ {
				b.WriteRune(rune(s[i]))
			}
			return b.String(), r.alloc(b.Len())
		case "utf-8", "utf8", "ascii":
		default:
			return nil, raise("LookupError", "unknown encoding: %s", name)
		}
	}
	if !utf8.ValidString(s) {
		return nil, raise("UnicodeDecodeError", "bytes are not UTF-8")
	}
	return s, nil
}

func bytesHex(r *run, self Value, a *arguments) (Value, error) {
	if _, err := a.bind("hex"); err != nil {
		return nil, err
	}
	return hex.EncodeToString([]byte(self.(Bytes))), nil
}

// numberAttr returns an attribute of an int, bool or float.
func numberAttr(v Value, name string) (Value, bool, error) {
	constant := func(fn func() (Value, error)) (Value, bool, error) {
		return &builtin{name: name, fn: func(r *run, a *arguments) (Value, error) {
			if _, err := a.bind(name); err != nil {
				return nil, err
			}
			return fn()
		}}, true, nil
	}
	if f, ok := v.(float64); ok {
		switch name {
		case "real":
			return f, true, nil
		case "imag":
			return 0.0, true, nil
		case "conjugate":
			return constant(func() (Value, error) { return f, nil })
		case "is_integer":
			return constant(func() (Value, error) { return f == math.Trunc(f) && !math.IsInf(f, 0), nil })
		case "hex":
			return constant(func() (Value, error) { return floatHex(f), nil })
		case "as_integer_ratio":
			return constant(func() (Value, error) {
				if math.IsNaN(f) {
					return nil, valueError("cannot convert NaN to integer ratio")
				}
				if math.IsInf(f, 0) {
					return nil, raise("OverflowError", "cannot convert Infinity to integer ratio")
				}
				q := new(big.Rat)
				q.SetFloat64(f)
				return tuple(normInt(q.Num()), normInt(q.Denom())), nil
			})
		}
		return nil, false, nil
	}
	i, ok := integer(v)
	if !ok {
		return nil, false, nil
	}
	n := normInt(i)
	switch name {
	case "real", "numerator":
		return n, true, nil
	case "imag":
		return int64(0), true, nil
	case "denominator":
		return int64(1), true, nil
	case "conjugate":
		return constant(func() (Value, error) { return n, nil })
	case "bit_length":
		return constant(func() (Value, error) { return int64(i.BitLen()), nil })
	case "bit_count":
		return constant(func() (Value, error) {
			return int64(strings.Count(new(big.Int).Abs(i).Text(2), "1")), nil
		})
	case "as_integer_ratio":
		return constant(func() (Value, error) { return tuple(n, int64(1)), nil })
	}
	return nil, false, nil
}

// floatHex is Python's float.hex.
func floatHex(f float64) string {
	switch {
	case math.IsInf(f, 0) || math.IsNaN(f):
		return floatRepr(f)
	case f == 0:
		if math.Signbit(f) {
			return "-0x0.0p+0"
		}
		return "0x0.0p+0"
	}
	m, e := math.Frexp(math.Abs(f))
	m, e = m*2, e-1
	if e < -1022 { // subnormal
		m, e = math.Ldexp(m, e+1022), -1022
	}
	whole := math.Floor(m)
	frac := uint64(math.Ldexp(m-whole, 52))
	sign := ""
	if f < 0 {
		sign = "-"
	}
	return fmt.Sprintf("%s0x%s.%013xp%+d", sign, strconv.Itoa(int(whole)), frac, e)
}
