package parameters

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/clip"
)

// Values describes the valid values, such as "number, 0 to 1".
func (p Info) Values() string {
	switch {
	case p.Type != Int && p.Type != Float || math.IsInf(p.Min, 0) && math.IsInf(p.Max, 0):
		return string(p.Type)
	}
	return fmt.Sprintf("%s, %s to %s", p.Type, bound(p.Min), bound(p.Max))
}

// bound formats the end of a range without an exponent.
func bound(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// DefaultText formats the default of requests, or returns "" if it is Go's zero value.
func (p Info) DefaultText() string {
	if p.Default == nil {
		return ""
	}
	return fmt.Sprint(p.Default)
}

// Check returns an error if a number is outside the parameter's range.
func (p Info) Check(v float64) error {
	if v >= p.Min && v <= p.Max { // false for NaN
		return nil
	}
	return fmt.Errorf("must be between %s and %s", bound(p.Min), bound(p.Max))
}

// Names returns the names of the parameters of the language that have an effect, sorted.
func Names() []string {
	var out []string
	for _, p := range table {
		if !p.Deprecated {
			out = append(out, p.Name)
		}
	}
	return out
}

// Parse parses the value of a known parameter as int64, float64, bool or string. If it fails, it returns the problem.
func Parse(name, value string) (any, string) {
	p, _ := Lookup(name)
	var v any
	var number float64
	var err error
	switch p.Type {
	case Int:
		var i int64
		i, err = strconv.ParseInt(value, 10, 64)
		v, number = i, float64(i)
	case Float:
		number, err = strconv.ParseFloat(value, 64)
		if math.IsNaN(number) || math.IsInf(number, 0) {
			err = strconv.ErrRange
		}
		v = number
	case Bool:
		v, err = strconv.ParseBool(value)
	case Strings:
		switch {
		case value == "":
			return nil, "parameter " + name + " must not be empty"
		case len(value) > limits.StopText:
			return nil, fmt.Sprintf("parameter %s has a text of %d bytes; at most %d are allowed", name, len(value),
				limits.StopText)
		}
		return value, ""
	}
	if err != nil {
		return nil, fmt.Sprintf("parameter %s must be %s %s", name, article(p.Type), p.Type)
	}
	if p.Type != Bool {
		if err := p.Check(number); err != nil {
			return nil, fmt.Sprintf("parameter %s %v", name, err)
		}
	}
	return v, ""
}

// CheckStops returns an error if stop texts exceed the limits. Import, load and requests use it.
func CheckStops(list []string) error {
	if len(list) > limits.Stops || slices.ContainsFunc(list, func(s string) bool { return len(s) > limits.StopText }) {
		return fmt.Errorf("stop: at most %d texts of %d bytes are allowed", limits.Stops, limits.StopText)
	}
	return nil
}

// Check checks the parameters of an image: the types and ranges of those that are known. Numbers may be any type
// of them.
func Check(params map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		p, ok := Lookup(name)
		if !ok || p.Deprecated || params[name] == nil {
			continue
		}
		v := params[name]
		list, isList := texts(v)
		_, isBool := v.(bool)
		number, err := strconv.ParseFloat(fmt.Sprint(v), 64)
		_, isText := v.(string)
		isNumber := err == nil && !isText
		switch {
		case p.Type == Strings && isList:
			if err := CheckStops(list); err != nil {
				return err
			}
		case p.Type == Strings || p.Type == Bool && !isBool || (p.Type == Int || p.Type == Float) && !isNumber ||
			p.Type == Int && number != math.Trunc(number):
			return fmt.Errorf("parameter %s is %s, which is not %s %s", name, clip.Line(fmt.Sprint(v), 40),
				article(p.Type), p.Type)
		case p.Type != Bool:
			if err := p.Check(number); err != nil {
				return fmt.Errorf("parameter %s is %v: %w", name, number, err)
			}
		}
	}
	return nil
}

// texts returns a list of texts, if a value is one.
func texts(v any) ([]string, bool) {
	if list, ok := v.([]string); ok {
		return list, true
	}
	list, ok := v.([]any)
	var out []string
	for _, e := range list {
		s, isText := e.(string)
		if out = append(out, s); !isText {
			return nil, false
		}
	}
	return out, ok
}

func article(t Type) string {
	switch t {
	case Int:
		return "an"
	case Bool:
		return "either"
	}
	return "a"
}
