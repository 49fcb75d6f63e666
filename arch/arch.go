// Package arch describes models without an engine: their configuration, their tensors and the tensors' shapes.
//
// One file per model_type registers an [Arch] and holds everything that is known of the type:
//   - a struct with every field that the model needs, parsed from all published key styles;
//   - the tensor table, with the published layouts and prefixes, and the tensors that are not imported, with the
//     reason;
//   - the precision rules: which type each tensor gets when the model is quantized;
//   - the state that each layer keeps of a sequence, from which caches and memory planning follow;
//   - the chat format, and the row in docs/models.md.
//
// Large types continue in X_table.go and the like. The tests of package models/all name what a registered type lacks.
//
// Import, verification and loading share this table. A checkpoint that passes [Table.Check] can therefore be loaded by
// the model of that type.
//
// A configuration is untrusted input. Every number is bounded, so that no product of sizes overflows an int64. Every
// error is one line that names the key and its value.
package arch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/internal/limits/clip"
)

// ErrUnknownArchitecture reports a configuration of a model type that is not supported.
var ErrUnknownArchitecture = errors.New("unknown architecture")

// ErrConfig reports a config.json that cannot be used: broken JSON, a missing key, or a value out of bounds.
var ErrConfig = errors.New("bad configuration")

// Arch is one model type.
type Arch struct {
	// ModelType is the value of model_type in config.json, and the name of the type.
	ModelType string
	// Aliases are other accepted values of model_type: of the text part alone, or of releases that differ in names only.
	Aliases []string
	// Architectures are the class names that config.json may list.
	Architectures []string
	// Parse reads a whole config.json of this type.
	Parse func(config []byte) (Model, error)
	// Chat is how the models read and write tool calls and thinking; nil = their chat templates alone decide.
	Chat *Chat
	// TextOnly types are published with towers that are not imported. Such images have no vision capability.
	TextOnly bool
	// Towers are the aliases of multimodal checkpoints whose text model alone is imported. The type itself is published
	// without towers.
	Towers []string
	// DraftOnly types propose tokens for other models and cannot run by themselves.
	DraftOnly bool
	// Plain types are run from their descriptions: they implement [Described].
	Plain bool
	// PerLayer types read per_layer_config, which gives single layers other sizes.
	PerLayer bool
	// Names are other names of keys that transformers reads, in pairs: the key that is read here, and its other name.
	Names []string
	// GGUF are the ways in which llama.cpp writes models of this type; nil = it does not.
	GGUF []GGUF
	Docs Docs
}

// Docs is what docs/models.md says of a model type. Empty fields other than Variants have a default.
type Docs struct {
	Variants  string
	Rules     string // default: generic
	Draft     string // default: no; DraftOnly types are one
	Vision    string // default: no
	Code      string // link to the code that it is tested against; default: the type's in transformers
	Reference string // beside that code; default: none
}

// Model is a parsed configuration. The dynamic type depends on the model type: *[Llama] for llama.
type Model interface {
	Facts() Facts
	// State returns what each layer keeps of a sequence, or several states of each layer, in order. Memory planning, and
	// the caches that a model runs with, follow from it. A model without layers of its own returns nil.
	State() []LayerState
	// Table returns the tensor table.
	Table() Table
	// Rules returns the precision rules: the type of each tensor when the model is quantized.
	Rules() Rules
}

// Facts are the properties of a model that users and registries see. A runtime reads the model's own struct instead.
type Facts struct {
	ModelType    string // as in [Arch]
	Architecture string // class name, as published
	DType        string // type that the configuration declares, e.g. "bfloat16"; "" if it declares none
	Vocab        int64
	Hidden       int64
	Layers       int64
	Context      int64 // longest sequence that the model was trained for or that its rope is scaled to
	Params       int64 // elements of all tensors in the table that are not optional
	Wide         bool  // activations exceed the range of float16
}

var known []Arch

// register adds a model type. Each file of this package calls it from its init.
func register(a Arch) {
	parse := a.Parse
	a.Parse = func(config []byte) (Model, error) {
		if err := a.checkShared(config); err != nil {
			return nil, err
		}
		return parse(a.normalized(config))
	}
	known = append(known, a)
	slices.SortFunc(known, func(a, b Arch) int { return strings.Compare(a.ModelType, b.ModelType) })
}

// checkShared refuses what the library's own code reads of the configurations of all types. A decoder that attends in
// both directions has the tensors of a decoder with a causal mask, so that nothing else tells them apart.
func (a Arch) checkShared(config []byte) error {
	top, text, err := openText(config)
	if err != nil {
		return err
	}
	for _, o := range []object{top, text} {
		if !o.boolean("is_causal", true) {
			o.fail("is_causal", "be true: this model attends in both directions, and encoders are not supported")
		}
		if layers, ok := o.object("per_layer_config"); ok && !a.PerLayer {
			o.fail("per_layer_config", fmt.Sprintf("be empty: layers that differ (%s) are not supported for this type",
				clip.Line(strings.Join(sortedKeys(layers.raw), ", "), maxQuoted)))
		}
		o.checkFixed(a.ModelType, top.str("model_type", ""))
	}
	return top.failed()
}

// All returns the known model types, sorted by name.
func All() []Arch { return slices.Clone(known) }

// Detect parses a config.json by its model_type or, if it has none, by its architectures. If both are present they must
// agree: llama's table does not describe a llama body under a different head.
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
		matches := len(classes) == 0 && modelType != ""
		for _, c := range classes {
			matches = matches || slices.Contains(a.Architectures, c) || a.isBase(c)
		}
		if matches && (modelType == "" || a.goesBy(modelType)) {
			return a.Parse(config)
		}
	}
	return nil, fmt.Errorf("config.json: model_type %q, architectures %q: %w (%s%s)", clip.Line(modelType, maxQuoted),
		clipAll(classes), ErrUnknownArchitecture, otherHead(classes), alternatives(modelType))
}

// goesBy reports whether a model_type is one of the architecture.
func (a Arch) goesBy(modelType string) bool {
	return modelType == a.ModelType || slices.Contains(a.Aliases, modelType)
}

// alternatives names the classes of a model_type, or if it is unknown types with similar names.
func alternatives(modelType string) string {
	for _, a := range known {
		if a.goesBy(modelType) {
			return "known: " + modelType + " as " + strings.Join(a.Architectures, ", ")
		}
	}
	return suggestions(modelType, Types(), typeList)
}
