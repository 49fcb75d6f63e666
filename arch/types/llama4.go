package types

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// chunkedAttention is the kind of layers that attend within chunks of the text.
const chunkedAttention = "chunked_attention"

// Llama4 is the configuration of model type "llama4_text", and of the text model of "llama4" (Scout, Maverick): layers
// that attend within chunks between full ones without rope, whose queries grow with the position, and experts whose
// input the router scales, beside a shared expert. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type Llama4 struct {
	config.Dense // Window is the size of chunks, Sliding says which layers have them
	Mixture      config.Mixture
	Rotates      []bool // by layer: queries and keys are rotated
	QKNorm       bool   // of layers that rotate, after rope, without weights
	// GrowthBeta and GrowthContext scale queries of layers without rope by 1 + GrowthBeta*ln(1 +
	// floor((position+1)/GrowthContext)); 0 = they do not grow.
	GrowthBeta    float64
	GrowthContext int
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "llama4",
		Aliases:       []string{"llama4_text"},
		Architectures: []string{"Llama4ForCausalLM", "Llama4ForConditionalGeneration"},
		GGUF:          []gguf.Map{ggufLlama4},
		TextOnly:      true,
		Published: table.Published{
			Experts:     table.Transposed,
			Nested:      true,
			HuggingFace: llama4Names,
			MLX:         llama4OfMLX,
		},
		Docs: arch.Docs{
			Variants: "text of Scout and Maverick: chunked attention, layers without rope, growing queries, " +
				"a shared expert, dense layers in between",
			Rules: "generic, also for experts",
		},
	}, ParseLlama4)
}

// ParseLlama4 parses the config.json of a llama4 or llama4_text model.
func ParseLlama4(data []byte) (*Llama4, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Llama4{Dense: config.ParseDecoder(top, o, config.Defaults{
		Class: "Llama4ForCausalLM", Vocab: 202048, Hidden: 5120, Layers: 48, Heads: 40, KVHeads: 8, HeadDim: 128,
		Context: 1 << 17,
		NormEps: 1e-5, BOS: []int32{1}, EOS: []int32{2},
	}, config.RopeOptions{Theta: 5e5})}
	m.Intermediate = o.Integer("intermediate_size_mlp", 16384, 1, config.MaxWidth)
	x := &m.Mixture
	x.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 16, PerToken: 1, Width: 8192}, "intermediate_size")
	x.Router, x.Shared = config.Router{ScaleInput: true}, x.Experts.Intermediate
	m.sparse(o)
	m.QKNorm = o.Bool("use_qk_norm", true)
	if m.Rotates = config.ParseRotates(o, m.Layers); o.Bool("attn_temperature_tuning", true) {
		m.GrowthBeta = o.AtLeast("attn_scale", 0.1, 0)
		m.GrowthContext = o.Integer("floor_scale", 8192, 1, config.MaxContext)
	}
	chunked := slices.Clone(m.Rotates)
	if kinds := o.Words("layer_types", m.Layers, config.FullAttention, chunkedAttention); kinds != nil {
		for i, kind := range kinds {
			chunked[i] = kind == chunkedAttention
		}
	}
	m.Slide(o.Window("attention_chunk_size", 8192), chunked)
	if m.Window == 0 && slices.Contains(chunked, true) {
		o.Fail("attention_chunk_size", "be a number: some layers attend in chunks")
	}
	return config.Done(m, o)
}

// sparse reads which layers have experts: those of a list, or every N-th layer.
func (m *Llama4) sparse(o config.Object) {
	const key = "moe_layers"
	every := o.Integer("interleave_moe_layer_step", 1, 1, config.MaxLayers)
	list := o.Integers(key, config.MaxLayers, 0, config.MaxLayers)
	for i := range m.Mixture.Sparse {
		m.Mixture.Sparse[i] = (i+1)%every == 0
		if o.Has(key) {
			m.Mixture.Sparse[i] = slices.Contains(list, i)
		}
	}
	for _, i := range list {
		if i >= m.Layers {
			o.Fail(key, fmt.Sprintf("hold numbers of the %d layers (it has %d)", m.Layers, i))
		}
	}
}

func (m *Llama4) Facts() config.Facts { return m.FactsAs("llama4", m.Rope, m.Table()) }

func (m *Llama4) Table() table.Table {
	t := m.Decoder().Table("llama4")
	t.Also(llama4OfMLX)
	t.TransposesExperts(".mlp.", ".feed_forward.")
	config.DropTowers(&t, "llama4")
	return t
}

// Decoder implements [arch.Described].
func (m *Llama4) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		Interleaved: true,
		RopeLayers:  m.Rotates,
		Growth:      decoder.Growth{Beta: m.GrowthBeta, Context: m.GrowthContext},
	}}
}

// ggufLlama4 is the mapping of llama4. llama.cpp takes the size of chunks, the growth of queries and which layers have
// a rope from the published models, whatever a file says, and norms of queries and keys by the number of experts.
var ggufLlama4 = gguf.Map{
	Architecture: "llama4",
	Config:       map[string]any{"model_type": "llama4_text", "architectures": []string{"Llama4ForCausalLM"}},
	Keys: append(slices.DeleteFunc(gguf.CountKeys("num_local_experts",
		gguf.Key{Key: "expert_feed_forward_length", To: "intermediate_size"},
		gguf.Key{Key: "interleave_moe_layer_step", To: "interleave_moe_layer_step"}),
		func(k gguf.Key) bool { return k.Key == "feed_forward_length" }),
		gguf.Key{Key: "feed_forward_length", To: "intermediate_size_mlp"}),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.MLP, gguf.PreNorms, gguf.MoE,
		gguf.SharedExperts),
	Adjust: func(c map[string]any, f gguf.File) error {
		c["use_qk_norm"] = c["num_local_experts"] != json.Number("128")
		if v, ok := f.Value("llama4.attention.sliding_window"); ok && v == json.Number("0") {
			layers, err := gguf.Layers(c)
			if err != nil {
				return err
			}
			c["layer_types"] = slices.Repeat([]string{config.FullAttention}, int(layers))
			c["no_rope_layers"] = slices.Repeat([]int{1}, int(layers))
		}
		if err := gguf.SetBiases(c, f); err != nil {
			return err
		}
		return gguf.SetFactors(c, f)
	},
}

// llama4Names are the published names of tensors, after those of the table.
var llama4Names = []string{
	".mlp.gate.", ".feed_forward.router.", ".mlp.shared_experts.", ".feed_forward.shared_expert.",
	".mlp.", ".feed_forward.",
}

// llama4OfMLX are the names of tensors in checkpoints of mlx-lm, after those of the table.
var llama4OfMLX = slices.Concat([]string{".mlp.switch_mlp.", ".feed_forward.experts."}, llama4Names)
