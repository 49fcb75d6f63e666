// Package arch is the registry of model types: what is known of each without an engine.
//
// Everything about a type is in its file in arch/types, which registers an [Arch]. This package and its siblings know
// no type by name. Its siblings are the language that types are written in: package config reads config.json, table has
// tensor tables, precision the types of quantized tensors, decoder describes layers, and gguf maps the files of
// llama.cpp.
//
// Import, verification and loading share a type's tensor table. A checkpoint that passes [table.Table.Check] can
// therefore be loaded by the model of that type.
package arch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/internal/limits/clip"
)

// ErrUnknownArchitecture reports a configuration of a model type that is not supported.
var ErrUnknownArchitecture = errors.New("unknown architecture")

// Arch is one model type.
type Arch struct {
	// ModelType is the value of model_type in config.json, and the name of the type.
	ModelType string
	// Aliases are other accepted values of model_type: of the text part alone, or of releases that differ in names only.
	Aliases []string
	// Architectures are the class names that config.json may list.
	Architectures []string
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
	// Latent types are run from the [config.LatentDecoder] that they embed.
	Latent bool
	// PerLayer types read per_layer_config, which gives single layers other sizes.
	PerLayer bool
	// Names are other names of keys that transformers reads, in pairs: the key that is read here, and its other name.
	Names []string
	// GGUF are the ways in which llama.cpp writes models of this type; nil = it does not.
	GGUF []gguf.Map
	// Defaults are values of absent keys, as JSON, by the names of the type whose class has other defaults.
	Defaults map[string]map[string]string
	// Fixed are keys that must have the value that the reference takes for granted, and Idle those without influence.
	Fixed []Fixed
	Idle  []Idle
	// Published says how checkpoints have the tensors, and Variants how those of single names of the type do.
	Published table.Published
	Variants  map[string]table.Published
	// Wide: published models exceed the range of float16. vLLM refuses to run Gemma 3 and GLM 4 in it, and scales the
	// layers of DeepSeek down:
	// https://github.com/vllm-project/vllm/blob/main/vllm/config/model.py
	// https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/models/deepseek_v2.py
	Wide bool
	// Equalizable: the decoder layers have the form of Llama's, so that channels can be scaled.
	Equalizable bool
	// Plainest: of several types with the same tensors, this is the one that others are variants of.
	Plainest bool
	Docs     Docs

	parse func(config []byte) (Model, error)
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

// Model is a parsed configuration. The dynamic type depends on the model type: *[types.Llama] for llama.
type Model interface {
	Facts() config.Facts
	// State returns what each layer keeps of a sequence, or several states of each layer, in order. Memory planning, and
	// the caches that a model runs with, follow from it. A model without layers of its own returns nil.
	State() []config.LayerState
	// Table returns the tensor table.
	Table() table.Table
	// Rules returns the precision rules: the type of each tensor when the model is quantized.
	Rules() precision.Rules
}

var known []Arch

// Register adds a model type, whose configurations parse reads whole. Each file of package types calls it from its
// init.
func Register[M Model](a Arch, parse func(config []byte) (M, error)) {
	a.parse = func(config []byte) (Model, error) { return parse(config) }
	known = append(known, a)
	slices.SortFunc(known, func(a, b Arch) int { return strings.Compare(a.ModelType, b.ModelType) })
}

// Parse reads a whole config.json of this type.
func (a Arch) Parse(config []byte) (Model, error) {
	if err := a.checkShared(config); err != nil {
		return nil, err
	}
	return a.parse(a.normalized(config))
}

// checkShared refuses what the library's own code reads of the configurations of all types. A decoder that attends in
// both directions has the tensors of a decoder with a causal mask, so that nothing else tells them apart.
func (a Arch) checkShared(data []byte) error {
	top, text, err := config.OpenText(data)
	if err != nil {
		return err
	}
	for _, o := range []config.Object{top, text} {
		if !o.Bool("is_causal", true) {
			o.Fail("is_causal", "be true: this model attends in both directions, and encoders are not supported")
		}
		if layers, ok := o.Object("per_layer_config"); ok && !a.PerLayer {
			o.Fail("per_layer_config", fmt.Sprintf("be empty: layers that differ (%s) are not supported for this type",
				clip.Line(strings.Join(config.SortedKeys(layers.Keys), ", "), config.MaxQuoted)))
		}
		a.checkFixed(o, top.String("model_type", ""))
	}
	return top.Failed()
}

// All returns the known model types, sorted by name.
func All() []Arch { return slices.Clone(known) }

// Detect parses a config.json by its model_type or, if it has none, by its architectures. If both are present they must
// agree: llama's table does not describe a llama body under a different head.
func Detect(data []byte) (Model, error) {
	o, err := config.Parse(data)
	if err != nil {
		return nil, err
	}
	modelType := o.String("model_type", "")
	classes := o.Strings("architectures")
	if err := o.Failed(); err != nil {
		return nil, err
	}
	for _, a := range known {
		matches := len(classes) == 0 && modelType != ""
		for _, c := range classes {
			matches = matches || slices.Contains(a.Architectures, c) || a.isBase(c)
		}
		if matches && (modelType == "" || a.goesBy(modelType)) {
			return a.Parse(data)
		}
	}
	return nil, fmt.Errorf("config.json: model_type %q, architectures %q: %w (%s%s)",
		clip.Line(modelType, config.MaxQuoted),
		config.ClipAll(classes), ErrUnknownArchitecture, otherHead(classes), alternatives(modelType))
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
