package arch

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/internal/limits/clip"
)

// ErrGGUF reports a GGUF file that does not describe a model as llama.cpp's converter does.
var ErrGGUF = errors.New("unusable GGUF metadata")

// GGUF says how llama.cpp's converter writes the models of a type: the metadata keys that make config.json, the names
// of the tensors, and what was done to their elements.
// https://github.com/ggml-org/llama.cpp/tree/master/conversion
type GGUF struct {
	Architecture string // value of general.architecture
	// When tells the files of the mapping from others of the architecture, and For the models from others of the type;
	// nil = they are all.
	When       func(f GGUFFile) bool
	For        func(m Model) bool
	Config     map[string]any // what config.json says of all models of the type
	Keys       []GGUFKey
	Tensors    []GGUFTensor
	ImportOnly bool // models are not written in this way
	// Numbers are metadata that checkpoints have as tensors of one element in each layer. Key is the whole key; its value
	// is a list of float32 numbers, or one for all layers. In To, * is the layer.
	Numbers []GGUFKey
	// Next are the tensors of layers after the last, which predict further tokens. In To, * counts from 0.
	Next []GGUFTensor
	// Adjust sets the keys that depend on several values or on tensors, and refuses models that only share the
	// architecture's name. nil = there are none.
	Adjust func(c map[string]any, f GGUFFile) error
	// Split returns the tensors that the converter makes of one tensor in its place, under the names of the file; nil =
	// it is written as it is.
	Split func(m Model, name string) []GGUFPiece
	// Also are keys that llama.cpp reads and that Keys do not make; nil = there are none.
	Also func(m Model) []GGUFPair
	// Limits are what llama.cpp cannot compute, and Refuse says what else, of models whose file would say all; nil, or
	// "" = it can.
	Limits GGUFLimits
	Refuse func(m Model) string
	// HeadDim is the size of the heads that the rope of a model is for; nil = the size of all heads.
	HeadDim func(m Model) int
	// LogScale times mscale_all_dim of yarn is rope.scaling.yarn_log_multiplier; 0 = there is no such key.
	LogScale float64
	// Pre is the kind of pre-tokenizer that a file without a tokenizer names; nil = none.
	Pre func(m Model) string
}

// GGUFLimits are the variants that llama.cpp runs of an architecture. The zero value is what most have: biases of
// queries, keys and values, or none; any size of heads; any head.
// https://github.com/ggml-org/llama.cpp/tree/master/src/models
type GGUFLimits struct {
	Biases    GGUFBiases
	Square    bool // the heads together are as wide as the model
	OwnHead   bool // embeddings are not tied
	Tied      bool // embeddings are tied
	Betas     bool // it reads beta_fast and beta_slow of yarn, which are 32 and 1 in others
	Unrounded bool // models do not round the bounds of yarn's ramp, though llama.cpp does
	NoWindow  bool // it reads the window but does not use it
	AnySparse bool // any layers have experts, by their tensors
}

// GGUFBiases are the biases of linear layers that llama.cpp reads.
type GGUFBiases int

// The usual ones, none, those of all attention, all, or all, which must be there.
const (
	biasesOfQKV GGUFBiases = iota
	noBiases
	biasesOfAttention
	allBiases
	biasesRequired
)

// GGUFKey is a metadata key that becomes a key of config.json.
type GGUFKey struct {
	Key      string // without the prefix "ARCHITECTURE."
	To       string // in config.json
	Field    string // of the model, or of its Mixture; "" = not written
	Optional bool
}

// GGUFTensor is a tensor of a file. Names may contain one *, the number of a layer.
type GGUFTensor struct {
	Name string
	To   string // in a checkpoint of safetensors; "" = not imported
	Why  string // it is not imported
	Op   GGUFOp // how the converter's changes are undone
	// Shape is the shape in the file of a tensor of a model; nil = the tensor's own, without dimensions of 1.
	Shape func(m Model, shape []int64) []int64
	// Beside is a tensor of the same layer without which the entry does not apply; "" = none.
	Beside string
}

// GGUFOp undoes what the converter did to a tensor. The zero value changes nothing.
type GGUFOp struct {
	What string // for users: "the rows of its heads in order"
	// Rows returns, for each row of the tensor, the row of the file.
	Rows func(m Model, rows int64) []int64
	// Blocks returns the order of the columns: for each block of the tensor's row, the block of the file's row, and the
	// number of columns in a block.
	Blocks func(m Model, columns int64) (order []int64, size int64)
	Each   func(float32) float32 // of each element, after it moved; the tensor becomes F32
	Back   func(float32) float32 // the inverse of Each: what the converter does
}

// GGUFPiece is a tensor that the converter makes of a part of another one.
type GGUFPiece struct {
	Name  string
	Shape []int64
	From  func(i int64) int64 // the element of the whole tensor for each of the piece
}

// GGUFFile is what a mapping reads of a file.
type GGUFFile interface {
	// Value returns a metadata value: a string, a bool, a json.Number, or a []any of them. What is none of these, such as
	// NaN, is a string that describes it: a key that a file has is never missing.
	Value(key string) (any, bool)
	// Shape returns the shape of a tensor, its outermost dimension first.
	Shape(name string) ([]int64, bool)
	// Floats reads a small tensor.
	Floats(name string) ([]float32, error)
}

// GGUFArchitectures lists the values of general.architecture that can be imported.
func GGUFArchitectures() []string {
	var list []string
	for _, a := range known {
		for _, g := range a.GGUF {
			list = append(list, g.Architecture)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// DetectGGUF finds the mapping of a file by its architecture.
func DetectGGUF(f GGUFFile) (GGUF, error) {
	const key = "general.architecture"
	read := checked(f)
	v, _ := read.Value(key)
	name, _ := v.(string)
	if err := *read.err; err != nil {
		return GGUF{}, err
	}
	if name == "" {
		return GGUF{}, fmt.Errorf("%w: %s is missing; it is not a model", ErrGGUF, key)
	}
	for _, a := range known {
		for _, g := range a.GGUF {
			if g.Architecture == name && (g.When == nil || g.When(read)) {
				return g, *read.err
			}
		}
	}
	return GGUF{}, fmt.Errorf("%s %q: %w (%s)", key, clip.Line(name, maxQuoted), ErrUnknownArchitecture,
		suggestions(name, GGUFArchitectures(), "docs/gguf.md"))
}

// MakeConfig makes the config.json of a file.
func (g GGUF) MakeConfig(f GGUFFile) ([]byte, error) {
	read := checked(f)
	config, err := g.makeConfig(read)
	if *read.err != nil { // before what follows from it
		return nil, *read.err
	}
	return config, err
}

func (g GGUF) makeConfig(f GGUFFile) ([]byte, error) {
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
			return nil, fmt.Errorf("%w: %s.%s is missing", ErrGGUF, g.Architecture, k.Key)
		}
	}
	shape, ok := f.Shape(ggufEmbedding)
	if !ok || len(shape) != 2 {
		return nil, fmt.Errorf("%w: there is no tensor %s of two dimensions; it is not a text model", ErrGGUF, ggufEmbedding)
	}
	c["vocab_size"] = shape[0]
	_, head := f.Shape(ggufHead)
	c["tie_word_embeddings"] = !head
	for key, to := range map[string]string{
		"tokenizer.ggml.bos_token_id": "bos_token_id", "tokenizer.ggml.eos_token_id": "eos_token_id",
	} {
		c[to] = nil
		if v, ok := f.Value(key); ok && isRow(v, shape[0]) {
			c[to] = v
		}
	}
	if err := ggufRope(c, g.Architecture, f); err != nil {
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

// Find returns the entry of a tensor's name, with the layer's number in it, of a model with so many layers.
func (g GGUF) Find(name string, layers int64, f GGUFFile) (GGUFTensor, bool) {
	for _, list := range [][]GGUFTensor{g.Tensors, g.Next} {
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
	return GGUFTensor{}, false
}

// layer matches a name and returns the layer in it; -1 if it has none.
func (t GGUFTensor) layer(name string) (int64, bool) {
	before, after, layered := strings.Cut(t.Name, "*")
	if !layered {
		return -1, t.Name == name
	}
	rest, ok := strings.CutPrefix(name, before)
	if !ok {
		return 0, false
	}
	if after == anyTensor {
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
func (t GGUFTensor) of(layer int64) GGUFTensor {
	t.To = strings.Replace(t.To, "*", strconv.FormatInt(layer, 10), 1)
	return t
}

// anyTensor stands for all tensors of a layer.
const anyTensor = ".*"

const (
	ggufEmbedding = "token_embd.weight"
	ggufHead      = "output.weight"
	ggufFactors   = "rope_freqs.weight"
	ggufShort     = "rope_factors_short.weight"
	ggufLong      = "rope_factors_long.weight"
)

// ggufKeys are the keys that every decoder has.
func ggufKeys(more ...GGUFKey) []GGUFKey {
	return append([]GGUFKey{
		{Key: "block_count", To: "num_hidden_layers", Field: "Layers"},
		{Key: "context_length", To: "max_position_embeddings", Field: "Context"},
		{Key: "embedding_length", To: "hidden_size", Field: "Hidden"},
		{Key: "feed_forward_length", To: "intermediate_size", Field: "Intermediate", Optional: true},
		{Key: "attention.head_count", To: "num_attention_heads", Field: "Heads"},
		{Key: "attention.head_count_kv", To: "num_key_value_heads", Field: "KVHeads", Optional: true},
		{Key: "attention.key_length", To: "head_dim", Field: "HeadDim", Optional: true},
		{Key: "attention.layer_norm_rms_epsilon", To: "rms_norm_eps", Field: "NormEps"},
		{Key: "rope.freq_base", To: "rope_theta", Field: "Rope.Theta", Optional: true},
	}, more...)
}

// ggufExperts are the keys of models with experts.
var ggufExperts = []GGUFKey{
	{Key: "expert_used_count", To: "num_experts_per_tok", Field: "Experts.PerToken"},
	{Key: "expert_feed_forward_length", To: "moe_intermediate_size", Field: "Experts.Intermediate"},
}

// ggufNames makes the entries of pairs of names: in the file and in a checkpoint, both without the prefix of a layer.
func ggufNames(op GGUFOp, pairs ...string) []GGUFTensor {
	var list []GGUFTensor
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, GGUFTensor{Name: "blk.*." + pairs[i], To: "model.layers.*." + pairs[i+1], Op: op})
	}
	return list
}

// ggufLinears makes the entries of weights and biases.
func ggufLinears(op GGUFOp, pairs ...string) []GGUFTensor {
	var list []GGUFTensor
	for i := 0; i+1 < len(pairs); i += 2 {
		for _, end := range []string{".weight", ".bias"} {
			list = append(list, ggufNames(op, pairs[i]+end, pairs[i+1]+end)...)
		}
	}
	return list
}

// ggufEnds are the tensors outside of layers. norm is for the weight of the last norm.
func ggufEnds(norm GGUFOp) []GGUFTensor {
	return []GGUFTensor{
		{Name: ggufEmbedding, To: "model.embed_tokens.weight"},
		{Name: "output_norm.weight", To: "model.norm.weight", Op: norm},
		{Name: ggufHead, To: "lm_head.weight"},
		{Name: ggufFactors, Why: "the frequencies that it makes are in config.json"},
		{Name: "blk.*.attn_rot_embd.weight", Why: dropInvFreq},
	}
}

// ggufValues are attention's values and output, and ggufMLP a gated feed-forward block.
var (
	ggufValues = ggufLinears(GGUFOp{}, "attn_v", "self_attn.v_proj", "attn_output", "self_attn.o_proj")
	ggufQK     = ggufLinears(GGUFOp{}, "attn_q", "self_attn.q_proj", "attn_k", "self_attn.k_proj")
	ggufMLP    = ggufLinears(GGUFOp{}, "ffn_gate", "mlp.gate_proj", "ffn_up", "mlp.up_proj", "ffn_down", "mlp.down_proj")
	// ggufMoE is a router and its experts.
	ggufMoE = append(ggufNames(GGUFOp{}, "ffn_gate_inp.weight", "mlp.gate.weight"),
		ggufStacked("mlp.experts", "mlp.switch_mlp")...)
)

// ggufStacked are the experts of a layer: gate and up in one tensor or in two. base and switched are the names of the
// two layouts in checkpoints, as in [Table.experts].
func ggufStacked(base, switched string) []GGUFTensor {
	const fused = "ffn_gate_up_exps.weight"
	down := ggufNames(GGUFOp{}, "ffn_down_exps.weight", base+".down_proj")
	down[0].Beside = "blk.*." + fused
	return append(down, ggufNames(GGUFOp{}, fused, base+".gate_up_proj",
		"ffn_gate_exps.weight", switched+".gate_proj.weight", "ffn_up_exps.weight", switched+".up_proj.weight",
		"ffn_down_exps.weight", switched+".down_proj.weight")...)
}

// plusOne undoes the 1 that the converter adds to the weights of Gemma's and Qwen's norms.
var plusOne = GGUFOp{
	What: "1 subtracted", Each: func(x float32) float32 { return x - 1 }, Back: func(x float32) float32 { return x + 1 },
}
