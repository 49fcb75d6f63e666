package gguf

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/internal/limits/clip"
)

// kinds are the keys that are no numbers, without the architecture's name. Every other key that a mapping reads is
// a number or a list of numbers.
var kinds = map[string]string{
	"general.architecture": "a string", "tokenizer.ggml.pre": "a string", "rope.scaling.type": "a string",
	"expert_weights_norm": "a bool", "use_parallel_residual": "a bool", "rope.scaling.finetuned": "a bool",
	"ssm.dt_b_c_rms":          "a bool",
	"attention.indexer.types": "a list of bools", "attention.recurrent_layers": "a list of bools",
	"attention.sliding_window_pattern": "a whole number or a list of bools",
}

// fractions are parts of the names of keys whose numbers need not be whole.
var fractions = []string{"epsilon", "freq_base", "scale", "factor", "softcapping", "beta", "clamp", "multiplier"}

// signed is the key whose numbers may be negative, and infinite: Gemma 3n's converter writes -inf for a layer
// without a limit.
const signed = "activation_sparsity_scale"

// checkedFile is a file that a mapping reads. A value that its key cannot have is an error and never a missing one,
// which would make another model of the file. The first error is kept.
type checkedFile struct {
	File
	err *error
}

func checked(f File) checkedFile { return checkedFile{f, new(error)} }

// Value implements [File].
func (f checkedFile) Value(key string) (any, bool) {
	v, ok := f.File.Value(key)
	if !ok || *f.err != nil {
		return v, ok
	}
	if want := Want(key, v); want != "" {
		*f.err = fmt.Errorf("%w: %s = %s: must be %s; convert the model again", ErrMetadata, key, Shown(v), want)
	}
	return v, ok
}

// Shown returns a value for a message.
func Shown(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(clip.Line(s, config.MaxQuoted))
	}
	return clip.Line(fmt.Sprint(v), config.MaxQuoted)
}

// Want says what the value of a key must be, if this one cannot be it.
func Want(key string, v any) string {
	_, short, _ := strings.Cut(key, ".")
	want, ok := kinds[key]
	if !ok {
		want, ok = kinds[short]
	}
	if !ok {
		if want = numberWanted(key, short); v != nil && isOrLists(v, numberIn(want, short)) {
			return ""
		}
		return want
	}
	list, isList := v.([]any)
	isBool := func(v any) bool { _, is := v.(bool); return is }
	switch want {
	case "a string":
		_, ok = v.(string)
	case "a bool":
		ok = isBool(v)
	case "a list of bools":
		ok = isList && isOrLists(list, isBool)
	case "a whole number or a list of bools":
		ok = isOrLists(v, numberIn(want, short)) || isList && isOrLists(list, isBool)
	}
	if ok {
		return ""
	}
	return want
}

// numberWanted says which numbers a key may have.
func numberWanted(key, short string) string {
	switch {
	case strings.HasPrefix(key, "tokenizer."): // ids of tokens; those that there are not are ignored
		return "a number"
	case short == signed:
		return "a number or a list of numbers"
	case slices.ContainsFunc(fractions, func(part string) bool { return strings.Contains(short, part) }):
		return "a number of at least 0, or a list of them"
	}
	return "a whole number or a list of them"
}

// numberIn returns a function that reports whether a value is a number of a kind that [numberWanted] names.
func numberIn(want, short string) func(any) bool {
	return func(v any) bool {
		if isInfinite := v == "inf" || v == "-inf"; isInfinite {
			return short == signed
		}
		n, ok := v.(json.Number)
		x, err := n.Float64()
		if !ok || err != nil || math.Abs(x) > config.MaxNumber && want != "a number" {
			return false
		}
		switch {
		case strings.HasPrefix(want, "a whole number"):
			return x >= 0 && x == math.Trunc(x)
		case strings.HasPrefix(want, "a number of at least 0"):
			return x >= 0
		}
		return true
	}
}

// isOrLists reports whether a value is one of a kind, or a list of them that is not empty.
func isOrLists(v any, is func(any) bool) bool {
	list, ok := v.([]any)
	if !ok {
		return is(v)
	}
	return len(list) > 0 && !slices.ContainsFunc(list, func(v any) bool { return !is(v) })
}
