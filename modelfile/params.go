package modelfile

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// ParameterType is the type of a parameter's value.
type ParameterType string

// The types of parameters. A Strings parameter can be given several times. For the others, the last value wins.
const (
	Int     ParameterType = "integer"
	Float   ParameterType = "number"
	Bool    ParameterType = "true or false"
	Strings ParameterType = "text"
)

// ParameterInfo describes a parameter.
type ParameterInfo struct {
	Name       string
	Type       ParameterType
	Min, Max   float64 // range of a number, inclusive
	Help       string
	Deprecated bool // accepted with a warning and ignored
}

// Values describes the valid values, such as "number, 0 to 1".
func (p ParameterInfo) Values() string {
	switch {
	case p.Type != Int && p.Type != Float || math.IsInf(p.Min, 0) && math.IsInf(p.Max, 0):
		return string(p.Type)
	}
	return fmt.Sprintf("%s, %s to %s", p.Type, bound(p.Min), bound(p.Max))
}

// bound formats the end of a range without an exponent.
func bound(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

var unbounded = math.Inf(1)

// parameters lists all parameters of the language, sorted by name.
var parameters = []ParameterInfo{
	{Name: "draft_num_predict", Type: Int, Min: 0, Max: 1024, Help: "draft depth in tokens per step; 0 = no drafting"},
	{Name: "f16_kv", Type: Bool, Deprecated: true},
	{Name: "frequency_penalty", Type: Float, Min: -100, Max: 100, Help: "subtracted from a logit for each occurrence"},
	{Name: "logits_all", Type: Bool, Deprecated: true},
	{Name: "low_vram", Type: Bool, Deprecated: true},
	{Name: "main_gpu", Type: Int, Min: 0, Max: 1 << 16, Help: "index of the device that holds the model"},
	{Name: "min_p", Type: Float, Min: 0, Max: 1, Help: "drops tokens below this share of the top one; 0 = off"},
	{Name: "mirostat", Type: Int, Min: -unbounded, Max: unbounded, Deprecated: true},
	{Name: "mirostat_eta", Type: Float, Min: -unbounded, Max: unbounded, Deprecated: true},
	{Name: "mirostat_tau", Type: Float, Min: -unbounded, Max: unbounded, Deprecated: true},
	{Name: "num_batch", Type: Int, Min: 1, Max: 1 << 20, Help: "tokens per prefill step"},
	{Name: "num_ctx", Type: Int, Min: 1, Max: 1 << 30, Help: "context length in tokens"},
	{Name: "num_gpu", Type: Int, Min: -1, Max: 1 << 16, Help: "layers on the GPU; -1 = automatic"},
	{Name: "num_keep", Type: Int, Min: -1, Max: 1 << 30, Help: "prompt tokens kept when the context is full; -1 = all"},
	{Name: "num_predict", Type: Int, Min: -2, Max: 1 << 30, Help: "maximum tokens to generate; negative = no limit"},
	{Name: "num_thread", Type: Int, Min: 0, Max: 1 << 16, Help: "CPU threads; 0 = automatic"},
	{Name: "penalize_newline", Type: Bool, Deprecated: true},
	{Name: "presence_penalty", Type: Float, Min: -100, Max: 100, Help: "subtracted from the logit of a seen token"},
	{Name: "repeat_last_n", Type: Int, Min: -1, Max: 1 << 30, Help: "tokens that penalties consider; 0 = none, -1 = all"},
	{Name: "repeat_penalty", Type: Float, Min: 0, Max: 100, Help: "divides the logit of a seen token; 1 = off"},
	{Name: "seed", Type: Int, Min: -unbounded, Max: unbounded, Help: "seed of the random numbers; negative = random"},
	{Name: "stop", Type: Strings, Help: "text at which generation stops (repeatable)"},
	{Name: "temperature", Type: Float, Min: 0, Max: 100, Help: "sampling temperature; 0 = always the most likely token"},
	{Name: "top_k", Type: Int, Min: -1, Max: 1 << 30, Help: "samples from this many top tokens; 0 or less = all"},
	{Name: "top_p", Type: Float, Min: 0, Max: 1, Help: "samples from top tokens of this total probability; 1 = all"},
	{Name: "typical_p", Type: Float, Min: 0, Max: 1, Help: "samples from tokens of typical probability; 1 = off"},
	{Name: "use_mlock", Type: Bool, Deprecated: true},
	{Name: "use_mmap", Type: Bool, Help: "memory-map the model's file"},
	{Name: "vocab_only", Type: Bool, Deprecated: true},
}

// Parameters returns all parameters of the language, sorted by name.
func Parameters() []ParameterInfo { return slices.Clone(parameters) }

// LookupParameter finds a parameter by its name.
func LookupParameter(name string) (ParameterInfo, bool) {
	for _, p := range parameters {
		if p.Name == name {
			return p, true
		}
	}
	return ParameterInfo{}, false
}

func parameterNames() []string {
	var out []string
	for _, p := range parameters {
		if !p.Deprecated {
			out = append(out, p.Name)
		}
	}
	return out
}

// parameterValue parses the value of a known parameter as int64, float64, bool or string. If it fails, it returns the
// problem.
func parameterValue(name, value string) (any, string) {
	p, _ := LookupParameter(name)
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
		if value == "" {
			return nil, "parameter " + name + " must not be empty"
		}
		return value, ""
	}
	if err != nil {
		return nil, fmt.Sprintf("parameter %s must be %s %s", name, article(p.Type), p.Type)
	}
	if p.Type != Bool && (number < p.Min || number > p.Max) {
		return nil, fmt.Sprintf("parameter %s must be between %s and %s", name, bound(p.Min), bound(p.Max))
	}
	return v, ""
}

func article(t ParameterType) string {
	switch t {
	case Int:
		return "an"
	case Bool:
		return "either"
	}
	return "a"
}

// Params returns the parameters that the file sets, by name, as int64, float64, bool or []string. Deprecated parameters
// are omitted with a warning.
func (f *File) Params() (params map[string]any, warnings []string, err error) {
	params = map[string]any{}
	for _, c := range f.All(Parameter) {
		p, ok := LookupParameter(c.Key)
		if !ok {
			return nil, nil, f.Errorf(c, "unknown parameter")
		}
		v, msg := parameterValue(c.Key, c.Value)
		if msg != "" {
			return nil, nil, f.Errorf(c, "%s", msg)
		}
		switch {
		case p.Deprecated:
			warnings = append(warnings, f.Errorf(c, "the parameter is deprecated and has no effect").Error())
		case p.Type == Strings:
			list, _ := params[c.Key].([]string)
			params[c.Key] = append(list, v.(string))
		default:
			params[c.Key] = v
		}
	}
	return params, warnings, nil
}
