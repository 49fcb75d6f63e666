package gguf

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Kind is the type of a metadata value.
type Kind uint32

// The kinds, with their numbers in a file.
const (
	Uint8   Kind = 0
	Int8    Kind = 1
	Uint16  Kind = 2
	Int16   Kind = 3
	Uint32  Kind = 4
	Int32   Kind = 5
	Float32 Kind = 6
	Bool    Kind = 7
	String  Kind = 8
	Array   Kind = 9
	Uint64  Kind = 10
	Int64   Kind = 11
	Float64 Kind = 12
)

var kindNames = [...]string{
	"uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool", "string", "array", "uint64", "int64",
	"float64",
}

// sizes are the bytes of the kinds that have a fixed size.
var sizes = [...]int{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint32(k))
}

func (k Kind) size() int {
	if int(k) < len(sizes) {
		return sizes[k]
	}
	return 0
}

// Value is a metadata value.
type Value struct {
	Kind    Kind // of the value, or of an array's elements
	IsArray bool
	Len     int   // elements of an array; 1 otherwise
	Offset  int64 // of numbers and bools, from the start of the file

	data    []byte   // numbers and bools
	strings []string // of kind String
	arrays  []Value  // of kind Array
}

// Strings returns the elements of an array of strings, or a string alone; nil for others. The caller must not change
// them.
func (v Value) Strings() []string { return v.strings }

// Values returns the elements of an array of arrays; nil for others.
func (v Value) Values() []Value { return v.arrays }

// Int returns element i as an integer, and false if it is not an integer or exceeds int64.
func (v Value) Int(i int) (int64, bool) {
	if i < 0 || i >= v.Len {
		return 0, false
	}
	switch v.Kind {
	case Uint8:
		return int64(v.data[i]), true
	case Int8:
		return int64(int8(v.data[i])), true
	case Uint16:
		return int64(binary.LittleEndian.Uint16(v.data[2*i:])), true
	case Int16:
		return int64(int16(binary.LittleEndian.Uint16(v.data[2*i:]))), true
	case Uint32:
		return int64(binary.LittleEndian.Uint32(v.data[4*i:])), true
	case Int32:
		return int64(int32(binary.LittleEndian.Uint32(v.data[4*i:]))), true
	case Uint64, Int64:
		n := int64(binary.LittleEndian.Uint64(v.data[8*i:]))
		return n, v.Kind == Int64 || n >= 0
	}
	return 0, false
}

// Float returns element i as a number, and false if it is not one.
func (v Value) Float(i int) (float64, bool) {
	if i < 0 || i >= v.Len {
		return 0, false
	}
	switch v.Kind {
	case Float32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(v.data[4*i:]))), true
	case Float64:
		return math.Float64frombits(binary.LittleEndian.Uint64(v.data[8*i:])), true
	}
	n, ok := v.Int(i)
	return float64(n), ok
}

// Bool returns element i, and false if it is not a bool.
func (v Value) Bool(i int) (value, ok bool) {
	if v.Kind != Bool || i < 0 || i >= v.Len {
		return false, false
	}
	return v.data[i] != 0, true
}

// String describes the value's type: "uint32", or "array of 3 string".
func (v Value) String() string {
	if v.IsArray {
		return fmt.Sprintf("array of %d %v", v.Len, v.Kind)
	}
	return v.Kind.String()
}

// Plain returns the value as JSON would have it: a string, a bool, a [json.Number], or a []any of them. Numbers are as
// short as they can be, as float32 if that is their type; one that JSON lacks is the string "inf", "-inf" or "nan". An
// array within an array is the string that [Value.String] returns.
func (v Value) Plain() any {
	if !v.IsArray {
		return v.plain(0)
	}
	list := make([]any, v.Len)
	for i := range list {
		list[i] = v.plain(i)
	}
	return list
}

func (v Value) plain(i int) any {
	switch v.Kind {
	case Array:
		return v.arrays[i].String()
	case String:
		return v.strings[i]
	case Bool:
		b, _ := v.Bool(i)
		return b
	case Uint64:
		return json.Number(strconv.FormatUint(binary.LittleEndian.Uint64(v.data[8*i:]), 10))
	case Float32, Float64:
		bits := 64
		if v.Kind == Float32 {
			bits = 32
		}
		switch x, _ := v.Float(i); {
		case math.IsNaN(x):
			return "nan"
		case math.IsInf(x, 1):
			return "inf"
		case math.IsInf(x, -1):
			return "-inf"
		default:
			return json.Number(strconv.FormatFloat(x, 'g', -1, bits))
		}
	}
	n, _ := v.Int(i)
	return json.Number(strconv.FormatInt(n, 10))
}
