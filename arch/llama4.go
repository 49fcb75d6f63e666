package arch

import (
	"fmt"
	"slices"
)

// chunkedAttention is the kind of layers that attend within chunks of the text.
const chunkedAttention = "chunked_attention"

// Llama4 is the configuration of model type "llama4_text", and of the text model of "llama4" (Scout, Maverick): layers
// that attend within chunks between full ones without rope, whose queries grow with the position, and experts whose
// input the router scales, beside a shared expert. Absent keys have the defaults of transformers 5.23; sizes are
// required.
type Llama4 struct {
	Dense   // Window is the size of chunks, Sliding says which layers have them
	Mixture Mixture
	Rotates []bool // by layer: queries and keys are rotated
	QKNorm  bool   // of layers that rotate, after rope, without weights
	// GrowthBeta and GrowthContext scale queries of layers without rope by 1 + GrowthBeta*ln(1 +
	// floor((position+1)/GrowthContext)); 0 = they do not grow.
	GrowthBeta    float64
	GrowthContext int
}

func init() {
	register(Arch{
		ModelType:     "llama4",
		Aliases:       []string{"llama4_text"},
		Architectures: []string{"Llama4ForCausalLM", "Llama4ForConditionalGeneration"},
		Parse:         func(config []byte) (Model, error) { return ParseLlama4(config) },
		GGUF:          []GGUF{ggufLlama4},
		TextOnly:      true,
		Docs: Docs{
			Variants: "text of Scout and Maverick: chunked attention, layers without rope, growing queries, " +
				"a shared expert, dense layers in between",
			Rules: "generic, also for experts",
		},
	})
}

// ParseLlama4 parses the config.json of a llama4 or llama4_text model.
func ParseLlama4(config []byte) (*Llama4, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Llama4{Dense: parseDecoder(top, o, commonDefaults{
		class: "Llama4ForCausalLM", vocab: 202048, hidden: 5120, layers: 48, heads: 40, kv: 8, dim: 128, ctx: 1 << 17,
		eps: 1e-5, bos: []int32{1}, eos: []int32{2},
	}, ropeOptions{theta: 5e5})}
	m.Intermediate = o.integer("intermediate_size_mlp", 16384, 1, maxWidth)
	x := &m.Mixture
	x.parseExperts(o, m.Common, mixtureDefaults{count: 16, perToken: 1, width: 8192}, "intermediate_size")
	x.Router, x.Shared = Router{ScaleInput: true}, x.Experts.Intermediate
	m.sparse(o)
	m.QKNorm = o.boolean("use_qk_norm", true)
	if m.Rotates = parseRotates(o, m.Layers); o.boolean("attn_temperature_tuning", true) {
		m.GrowthBeta = o.atLeast("attn_scale", 0.1, 0)
		m.GrowthContext = o.integer("floor_scale", 8192, 1, maxContext)
	}
	chunked := slices.Clone(m.Rotates)
	if kinds := o.kinds("layer_types", m.Layers, fullAttention, chunkedAttention); kinds != nil {
		for i, kind := range kinds {
			chunked[i] = kind == chunkedAttention
		}
	}
	m.slide(o.window("attention_chunk_size", 8192), chunked)
	if m.Window == 0 && slices.Contains(chunked, true) {
		o.fail("attention_chunk_size", "be a number: some layers attend in chunks")
	}
	return parsed(m, o)
}

// sparse reads which layers have experts: those of a list, or each so many-th.
func (m *Llama4) sparse(o object) {
	const key = "moe_layers"
	every := o.integer("interleave_moe_layer_step", 1, 1, maxLayers)
	list := o.integers(key, maxLayers, 0, maxLayers)
	for i := range m.Mixture.Sparse {
		m.Mixture.Sparse[i] = (i+1)%every == 0
		if o.has(key) {
			m.Mixture.Sparse[i] = slices.Contains(list, i)
		}
	}
	for _, i := range list {
		if i >= m.Layers {
			o.fail(key, fmt.Sprintf("hold numbers of the %d layers (it has %d)", m.Layers, i))
		}
	}
}

// Facts implements [Model].
func (m *Llama4) Facts() Facts { return m.facts("llama4", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Llama4) Table() Table {
	t := m.decodes("llama4", m.Mixture, nil)
	t.also([]string{
		".mlp.gate.", ".feed_forward.router.", ".mlp.shared_experts.", ".feed_forward.shared_expert.",
		".mlp.switch_mlp.", ".feed_forward.experts.", ".mlp.", ".feed_forward.",
	})
	t.transposesExperts(".mlp.", ".feed_forward.")
	t.dropTowers("llama4")
	return t
}
