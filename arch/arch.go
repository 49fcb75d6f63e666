// Package arch tells what a model is: its configuration, its tensors and their shapes, without an engine.
//
// One file per model_type holds a struct with every field that the model needs, parsed from all key styles in which such
// configurations are published; the table of its tensors, with the layouts and prefixes that they are published in and what
// is left out, and why; and the precision that each tensor gets when the model is quantized. Importing, verifying and loading
// read this one table, so a checkpoint that passed [Table.Check] is one that the model of that type can load.
//
// A configuration is untrusted input: every number is bounded, so that no product of sizes overflows an int64, and
// every error is one line that names the key and its value.
package arch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnknownArchitecture says that a configuration is of a kind of model that this program does not know.
var ErrUnknownArchitecture = errors.New("unknown architecture")

// ErrConfig says that a config.json cannot be used: broken JSON, an absent key, a value out of bounds.
var ErrConfig = errors.New("bad configuration")

// Arch is one kind of model.
type Arch struct {
	// ModelType is the value of model_type in config.json, and the name of the kind.
	ModelType string
	// Aliases are other values of model_type for it: of its text part alone, of releases that differ in names only.
	Aliases []string
	// Architectures are the class names that config.json may list for it.
	Architectures []string
	// Parse reads a whole config.json of this kind.
	Parse func(config []byte) (Model, error)
}

// Model is a parsed configuration. What it really is depends on the kind: for llama a *[Llama].
type Model interface {
	Facts() Facts
	// Table lists the tensors.
	Table() Table
	// Rules say what type each of them gets when the model is quantized.
	Rules() Rules
}

// Facts are what people and registries want to know of a model. A runtime reads the model's own struct instead.
type Facts struct {
	ModelType    string // of the kind of model, see [Arch]
	Architecture string // class name, as published
	DType        string // type the checkpoint claims to be in, e.g. "bfloat16"; "" when it does not say
	Vocab        int64
	Hidden       int64
	Layers       int64
	Context      int64 // longest sequence the model was made for, or that its rope is scaled to
	Params       int64 // elements of all tensors of the table that are not optional
}

var known []Arch

// register adds a kind of model; each file of this package does so in its init.
func register(a Arch) {
	known = append(known, a)
	slices.SortFunc(known, func(a, b Arch) int { return strings.Compare(a.ModelType, b.ModelType) })
}

// ModelTypes lists the model types that are known, sorted.
func ModelTypes() []string {
	out := make([]string, len(known))
	for i, a := range known {
		out[i] = a.ModelType
	}
	return out
}

// Detect parses a config.json by its model_type or, where it has none, by its architectures. When both are there they
// must agree: a llama body under another head is not a model that llama's table describes.
func Detect(config []byte) (Model, error) {
	o, err := parseObject(config)
	if err != nil {
		return nil, err
	}
	modelType := o.str("model_type", "")
	classes := o.strs("architectures")
	if err := o.failed(); err != nil {
		return nil, err
	}
	for _, a := range known {
		fits := len(classes) == 0 && modelType != ""
		for _, c := range classes {
			fits = fits || slices.Contains(a.Architectures, c)
		}
		if fits && (modelType == "" || modelType == a.ModelType || slices.Contains(a.Aliases, modelType)) {
			return a.Parse(config)
		}
	}
	return nil, fmt.Errorf("config.json: model_type %q, architectures %q: %w (known: %s)",
		clip(modelType), clipAll(classes), ErrUnknownArchitecture, knownNames())
}

func knownNames() string {
	var out []string
	for _, a := range known {
		out = append(out, a.ModelType+" ("+a.Architectures[0]+")")
	}
	return strings.Join(out, ", ")
}
