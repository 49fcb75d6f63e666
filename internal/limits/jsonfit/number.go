package jsonfit

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/internal/limits/pyjson"
)

func isInteger(k reflect.Kind) bool { return reflect.Int <= k && k <= reflect.Uintptr }

func isNumber(c byte) bool { return c == '-' || '0' <= c && c <= '9' }

// setInteger sets an integer from a JSON number.
func setInteger(v reflect.Value, text string) error {
	whole, ok := Whole(text)
	if ok && v.CanInt() {
		n, err := strconv.ParseInt(whole, 10, v.Type().Bits())
		v.SetInt(n)
		ok = err == nil
	} else if ok {
		n, err := strconv.ParseUint(whole, 10, v.Type().Bits())
		v.SetUint(n)
		ok = err == nil
	}
	if !ok {
		return Wrong([]byte(text), pyjson.Kind(v.Type())+rangeOf(v.Type(), whole != ""))
	}
	return nil
}

// rangeOf returns the end of a message about a whole number that does not fit.
func rangeOf(t reflect.Type, whole bool) string {
	switch {
	case !whole:
		return ""
	case reflect.Zero(t).CanUint():
		return " of at least 0 and at most " + strconv.Itoa(t.Bits()) + " bits"
	}
	return " of at most " + strconv.Itoa(t.Bits()) + " bits"
}

// maxDigits are more digits than an integer of 64 bits has.
const maxDigits = 20

// Whole returns a JSON number as a plain integer of any size up to 20 digits, exactly: 1.50e1 is 15. It reports false
// for other numbers, and for text that is not a number; whole is not empty if the number is whole but too large.
func Whole(number string) (whole string, ok bool) {
	rest, negative := strings.CutPrefix(number, "-")
	mantissa, power, hasPower := strings.Cut(strings.ReplaceAll(rest, "E", "e"), "e")
	before, after, _ := strings.Cut(mantissa, ".")
	digits := before + after
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return "", false
	}
	exponent := 0
	if hasPower {
		n, err := strconv.Atoi(power)
		if n = min(max(n, -1<<30), 1<<30); err != nil && n == 0 {
			return "", false // not a number; Atoi returns the nearest one of those that are too large
		}
		exponent = n
	}
	point := len(before) + exponent // the position of the decimal point in digits
	significant := strings.TrimLeft(digits, "0")
	point -= len(digits) - len(significant)
	significant = strings.TrimRight(significant, "0")
	switch {
	case significant == "":
		return "0", true
	case point < len(significant):
		return "", false
	case point > maxDigits:
		return number, false
	}
	whole = significant + strings.Repeat("0", point-len(significant))
	if negative {
		whole = "-" + whole
	}
	return whole, true
}
