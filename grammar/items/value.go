package items

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Value is a JSON value. Values are equal exactly if their keys are.
type Value struct {
	Key string

	parts []*Value
	names []string // of an object, sorted; parallel to parts
}

// get returns the value of a name, nil if an object lacks it.
func (v *Value) get(name string) *Value {
	if i, ok := slices.BinarySearch(v.names, name); ok {
		return v.parts[i]
	}
	return nil
}

// Literal returns true, false or null.
func Literal(text string) *Value { return &Value{Key: text} }

// String returns a string of these characters.
func String(text string) *Value { return &Value{Key: `"` + text} }

// Number returns a number in JSON's syntax.
func Number(text string) *Value { return &Value{Key: numberKey(text)} }

// Array returns an array of values.
func Array(parts []*Value) *Value {
	var b strings.Builder
	b.WriteByte('[')
	for _, p := range parts {
		fmt.Fprintf(&b, "%d:%s", len(p.Key), p.Key)
	}
	return &Value{Key: b.String(), parts: parts}
}

// Object returns an object. names differ.
func Object(names []string, parts []*Value) *Value {
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(names[a], names[b]) })
	v := &Value{names: make([]string, len(names)), parts: make([]*Value, len(names))}
	var b strings.Builder
	b.WriteByte('{')
	for i, k := range order {
		v.names[i], v.parts[i] = names[k], parts[k]
		fmt.Fprintf(&b, "%d:%s%d:%s", len(names[k]), names[k], len(parts[k].Key), parts[k].Key)
	}
	v.Key = b.String()
	return v
}

// The key of a number is its sign, its digits without zeros at the ends, digitsEnd, and the exponent of a fraction
// 0.DIGITS. digitsEnd sorts before all digits, so the numbers whose digits begin alike are next to each other.
const (
	numberStart = 'd'
	digitsEnd   = '!'
	zeroKey     = "d+!"
)

func numberKey(text string) string {
	sign := "+"
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		sign, text = "-", rest
	}
	exponent := 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		n, err := strconv.Atoi(text[i+1:])
		if err != nil || n > 1<<40 || n < -1<<40 { // no grammar writes such a number
			return "d?" + sign + text
		}
		exponent, text = n, text[:i]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent += len(whole) - (len(whole) + len(fraction) - len(digits))
	if digits = strings.TrimRight(digits, "0"); digits == "" {
		return zeroKey
	}
	return string(numberStart) + sign + digits + string(digitsEnd) + strconv.Itoa(exponent)
}

// digitAt returns the i-th digit of a number's key, from its first digit that is not 0.
func digitAt(key string, i int) byte {
	end := strings.IndexByte(key, digitsEnd)
	if i += 2; end >= 0 && i >= end {
		return '0'
	}
	if i >= len(key) {
		return '0'
	}
	return key[i]
}
