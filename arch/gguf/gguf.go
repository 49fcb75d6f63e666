// Package gguf is the language of mappings between models and the files of llama.cpp: the metadata keys that make
// config.json, the names of tensors, and what the converter does to their elements.
//
// The mappings themselves are beside their model types, in package arch/types. Both directions follow from one mapping.
package gguf

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/arch/config"
)

// ErrMetadata reports a GGUF file that does not describe a model as llama.cpp's converter does.
var ErrMetadata = errors.New("unusable GGUF metadata")

// Map says how llama.cpp's converter writes the models of a type: the metadata keys that make config.json, the names
// of the tensors, and what was done to their elements.
// https://github.com/ggml-org/llama.cpp/tree/master/conversion
type Map struct {
	Architecture string // value of general.architecture
	// When tells the files of the mapping from others of the architecture, and For the models from others of the type;
	// nil = they are all.
	When       func(f File) bool
	For        func(m Model) bool
	Config     map[string]any // what config.json says of all models of the type
	Keys       []Key
	Tensors    []Tensor
	ImportOnly bool // models are not written in this way
	// Numbers are metadata that checkpoints have as tensors of one element in each layer. Key is the whole key; its value
	// is a list of float32 numbers, or one for all layers. In To, * is the layer.
	Numbers []Key
	// Next are the tensors of layers after the last, which predict further tokens. In To, * counts from 0.
	Next []Tensor
	// Adjust sets the keys that depend on several values or on tensors, and refuses models that only share the
	// architecture's name. nil = there are none.
	Adjust func(c map[string]any, f File) error
	// Split returns the tensors that the converter makes of one tensor in its place, under the names of the file; nil =
	// it is written as it is.
	Split func(m Model, name string) []Piece
	// Also are keys that llama.cpp reads and that Keys do not make; nil = there are none.
	Also func(m Model) []Pair
	// Limits are what llama.cpp cannot compute, and Refuse says what else, of models whose file would say all; nil, or
	// "" = it can.
	Limits Limits
	Refuse func(m Model) string
	// HeadDim is the size of the heads that the rope of a model is for; nil = the size of all heads.
	HeadDim func(m Model) int
	// LogScale times mscale_all_dim of yarn is rope.scaling.yarn_log_multiplier; 0 = there is no such key.
	LogScale float64
	// Pre is the kind of pre-tokenizer that a file without a tokenizer names; nil = none.
	Pre func(m Model) string
}

// Model is a parsed configuration, as mappings read it: by its dynamic type and its fields.
type Model interface {
	Facts() config.Facts
}

// Limits are the variants that llama.cpp runs of an architecture. The zero value is what most have: biases of
// queries, keys and values, or none; any size of heads; any head.
// https://github.com/ggml-org/llama.cpp/tree/master/src/models
type Limits struct {
	Biases    Biases
	Square    bool // the heads together are as wide as the model
	OwnHead   bool // embeddings are not tied
	Tied      bool // embeddings are tied
	Betas     bool // it reads beta_fast and beta_slow of yarn, which are 32 and 1 in others
	Unrounded bool // models do not round the bounds of yarn's ramp, though llama.cpp does
	NoWindow  bool // it reads the window but does not use it
	AnySparse bool // any layers have experts, by their tensors
}

// Biases are the biases of linear layers that llama.cpp reads.
type Biases int

// The usual ones, none, those of all attention, all, or all, which must be there.
const (
	QKVBiases Biases = iota
	NoBiases
	AttentionBiases
	AllBiases
	RequiredBiases
)

// Key is a metadata key that becomes a key of config.json.
type Key struct {
	Key      string // without the prefix "ARCHITECTURE."
	To       string // in config.json
	Field    string // of the model, or of its Mixture; "" = not written
	Optional bool
}

// Tensor is a tensor of a file. Names may contain one *, the number of a layer.
type Tensor struct {
	Name string
	To   string // in a checkpoint of safetensors; "" = not imported
	Why  string // it is not imported
	Op   Op     // how the converter's changes are undone
	// Shape is the shape in the file of a tensor of a model; nil = the tensor's own, without dimensions of 1.
	Shape func(m Model, shape []int64) []int64
	// Beside is a tensor of the same layer without which the entry does not apply; "" = none.
	Beside string
}

// Op undoes what the converter did to a tensor. The zero value changes nothing.
type Op struct {
	What string // for users: "the rows of its heads in order"
	// Rows returns, for each row of the tensor, the row of the file.
	Rows func(m Model, rows int64) []int64
	// Blocks returns the order of the columns: for each block of the tensor's row, the block of the file's row, and the
	// number of columns in a block.
	Blocks func(m Model, columns int64) (order []int64, size int64)
	Each   func(float32) float32 // of each element, after it moved; the tensor becomes F32
	Back   func(float32) float32 // the inverse of Each: what the converter does
}

// Piece is a tensor that the converter makes of a part of another one.
type Piece struct {
	Name  string
	Shape []int64
	From  func(i int64) int64 // the element of the whole tensor for each of the piece
}

// File is what a mapping reads of a file.
type File interface {
	// Value returns a metadata value: a string, a bool, a json.Number, or a []any of them. What is none of these, such as
	// NaN, is a string that describes it: a key that a file has is never missing.
	Value(key string) (any, bool)
	// Shape returns the shape of a tensor, its outermost dimension first.
	Shape(name string) ([]int64, bool)
	// Floats reads a small tensor.
	Floats(name string) ([]float32, error)
}

// Find finds the mapping of a file by its architecture, which it returns, too; nil = there is none.
func Find(f File, all iter.Seq[Map]) (found *Map, architecture string, err error) {
	const key = "general.architecture"
	read := checked(f)
	v, _ := read.Value(key)
	name, _ := v.(string)
	if err := *read.err; err != nil {
		return nil, "", err
	}
	if name == "" {
		return nil, "", fmt.Errorf("%w: %s is missing; it is not a model", ErrMetadata, key)
	}
	for g := range all {
		if g.Architecture == name && (g.When == nil || g.When(read)) {
			return &g, name, *read.err
		}
	}
	return nil, name, nil
}

// MakeConfig makes the config.json of a file.
func (g Map) MakeConfig(f File) ([]byte, error) {
	read := checked(f)
	config, err := g.makeConfig(read)
	if *read.err != nil { // before what follows from it
		return nil, *read.err
	}
	return config, err
}

func (g Map) makeConfig(f File) ([]byte, error) {
	c := map[string]any{}
	for key, v := range g.Config {
		c[key] = v
	}
	for _, k := range g.Keys {
		v, ok := f.Value(g.Architecture + "." + k.Key)
		switch {
		case ok:
			c[k.To] = v
		case !k.Optional:
			return nil, fmt.Errorf("%w: %s.%s is missing", ErrMetadata, g.Architecture, k.Key)
		}
	}
	shape, ok := f.Shape(Embedding)
	if !ok || len(shape) != 2 {
		return nil, fmt.Errorf("%w: there is no tensor %s of two dimensions; it is not a text model", ErrMetadata, Embedding)
	}
	c["vocab_size"] = shape[0]
	_, head := f.Shape(Head)
	c["tie_word_embeddings"] = !head
	for key, to := range map[string]string{
		"tokenizer.ggml.bos_token_id": "bos_token_id", "tokenizer.ggml.eos_token_id": "eos_token_id",
	} {
		c[to] = nil
		if v, ok := f.Value(key); ok && isRow(v, shape[0]) {
			c[to] = v
		}
	}
	if err := setRope(c, g.Architecture, f); err != nil {
		return nil, err
	}
	if g.Adjust != nil {
		if err := g.Adjust(c, f); err != nil {
			return nil, err
		}
	}
	return json.MarshalIndent(c, "", "  ")
}

// isRow reports whether a value is the number of a row. llama.cpp ignores ids of special tokens that are not.
func isRow(v any, rows int64) bool {
	number, ok := v.(json.Number)
	if !ok {
		return true // the configuration's reader refuses it
	}
	n, err := number.Int64()
	return err == nil && n >= 0 && n < rows
}

// Find returns the entry of a tensor's name, with the layer's number in it, of a model with layers layers.
func (g Map) Find(name string, layers int64, f File) (Tensor, bool) {
	for _, list := range [][]Tensor{g.Tensors, g.Next} {
		for _, t := range list {
			n, ok := t.layer(name)
			if !ok || (n >= layers) != (&list[0] != &g.Tensors[0]) {
				continue
			}
			if t.Beside != "" {
				if _, ok := f.Shape(strings.Replace(t.Beside, "*", strconv.FormatInt(n, 10), 1)); !ok {
					continue
				}
			}
			if n >= layers {
				n -= layers
			}
			return t.of(n), true
		}
	}
	return Tensor{}, false
}

// layer matches a name and returns the layer in it; -1 if it has none.
func (t Tensor) layer(name string) (int64, bool) {
	before, after, layered := strings.Cut(t.Name, "*")
	if !layered {
		return -1, t.Name == name
	}
	rest, ok := strings.CutPrefix(name, before)
	if !ok {
		return 0, false
	}
	if after == AnyTensor {
		rest, _, ok = strings.Cut(rest, ".")
	} else {
		rest, ok = strings.CutSuffix(rest, after)
	}
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(rest, 10, 32)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == rest
}

// of returns the entry with the number of a layer.
func (t Tensor) of(layer int64) Tensor {
	t.To = strings.Replace(t.To, "*", strconv.FormatInt(layer, 10), 1)
	return t
}

// AnyTensor stands for all tensors of a layer.
const AnyTensor = ".*"

const (
	Embedding    = "token_embd.weight"
	Head         = "output.weight"
	Factors      = "rope_freqs.weight"
	ShortFactors = "rope_factors_short.weight"
	LongFactors  = "rope_factors_long.weight"
)
