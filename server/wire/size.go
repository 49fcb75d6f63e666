package wire

import (
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

// Estimates of JSON, in bytes.
const (
	sizeNumber = 21
	sizeFloat  = 16
	sizeValue  = 4   // of a word, and of what is around a value
	sizeLevels = 100 // of values in values that are looked at
)

// sizeJSON estimates the bytes of a value's JSON before it is made, without less than there are of texts, lists and
// numbers. Types that encode themselves count with what they hold.
func sizeJSON(v reflect.Value) int64 { return sizeWithin(v, sizeLevels) }

func sizeWithin(v reflect.Value, levels int) (n int64) {
	if levels == 0 {
		return sizeValue
	}
	switch v.Kind() {
	case reflect.String:
		return sizeText(v.String())
	case reflect.Int32:
		return sizeDigits(v.Int())
	case reflect.Float32, reflect.Float64:
		return sizeFloat
	case reflect.Bool, reflect.Invalid, reflect.Func, reflect.Chan:
		return sizeValue
	case reflect.Pointer, reflect.Interface:
		return sizeWithin(v.Elem(), levels-1)
	case reflect.Slice, reflect.Array:
		return sizeList(v, levels)
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			n += sizeWithin(entries.Key(), levels-1) + sizeWithin(entries.Value(), levels-1) + sizeValue
		}
		return n + sizeValue
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return int64(len(time.RFC3339Nano)) + sizeValue
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Tag.Get("json") != "-" {
				n += int64(len(f.Name)+len(f.Tag.Get("json"))) + sizeValue + sizeWithin(v.Field(i), levels-1)
			}
		}
		return n + sizeValue
	}
	return sizeNumber
}

// sizeList returns the size of a list, and of bytes: those of JSON are as they are, others as base64 text.
func sizeList(v reflect.Value, levels int) (n int64) {
	switch kind := v.Type().Elem().Kind(); {
	case kind == reflect.Uint8:
		return int64(v.Len()+2)/3*4 + sizeValue
	case kind == reflect.Float32 || kind == reflect.Float64:
		return int64(v.Len())*sizeFloat + sizeValue
	case kind == reflect.Int32 && v.CanInterface() && v.Type() == reflect.TypeFor[[]int32]():
		for _, i := range v.Interface().([]int32) {
			n += sizeDigits(int64(i))
		}
		return n + sizeValue
	}
	for i := range v.Len() {
		n += sizeWithin(v.Index(i), levels-1) + 1
	}
	return n + sizeValue
}

// sizeDigits returns the length of a number, with the comma after it.
func sizeDigits(i int64) (n int64) {
	n = 2
	if i < 0 {
		i, n = -i, n+1
	}
	for ; i >= 10; i /= 10 {
		n++
	}
	return n
}

// sizeText returns the length of a text as a JSON string.
func sizeText(text string) int64 {
	const escape, short = len(`\u0000`), len(`\n`)
	n, valid := len(text)+len(`""`), utf8.ValidString(text)
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t':
			n += short - 1
		case c < ' ':
			n += escape - 1
		}
	}
	n += (strings.Count(text, "\u2028") + strings.Count(text, "\u2029")) * (escape - len("\u2028"))
	for rest := text; rest != "" && !valid; { // each wrong byte becomes an escape
		r, size := utf8.DecodeRuneInString(rest)
		if r == utf8.RuneError && size == 1 {
			n += escape - 1
		}
		rest = rest[size:]
	}
	return int64(n)
}
