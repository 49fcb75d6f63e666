package arch

import "github.com/ingotml/ingot/arch/decoder"

// Phimoe is the configuration of model type "phimoe" (Phi-3.5 MoE): a pre-norm decoder with LayerNorms, and two
// experts per token of a router that masks scores (SparseMixer) in every layer. Absent keys have the defaults of
// transformers 5.23; sizes are required.
type Phimoe struct {
	Dense
	Mixture  Mixture
	HeadBias bool // a bias of the output head
}

func init() {
	register(Arch{
		ModelType:     "phimoe",
		Plain:         true,
		Architectures: []string{"PhimoeForCausalLM", "PhiMoEForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParsePhimoe(config) },
		GGUF:          []GGUF{ggufPhimoe},
		Docs: Docs{
			Variants: "experts named `w1` to `w3`, biases, longrope, sliding window in all layers",
			Rules:    "generic, also for experts",
		},
	})
}

// ParsePhimoe parses the config.json of a phimoe model.
func ParsePhimoe(config []byte) (*Phimoe, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "PhimoeForCausalLM", kv: 8, ctx: 1 << 17, eps: 1e-5, bos: []int32{1}, eos: []int32{2}}
	types := []RopeType{RopeDefault, RopeLong}
	m := &Phimoe{
		Dense:    parseDecoder(top, o, d, ropeOptions{types: types, theta: 1e6}),
		HeadBias: o.boolean("lm_head_bias", false),
	}
	if m.Rope.Type == RopeLong {
		m.scaleByLength(o)
	}
	x := &m.Mixture
	x.parseExperts(o, m.Common, mixtureDefaults{count: 16, perToken: 2}, "intermediate_size")
	if x.Experts.PerToken != 2 {
		o.fail("num_experts_per_tok", "be 2: the router chooses two experts, one after the other")
	}
	x.Router = Router{SparseMixer: true, Jitter: o.atLeast("router_jitter_noise", 0.01, 0)}
	m.everywhere(o.window("sliding_window", 0))
	return parsed(m, o)
}

// scaleByLength reads the attention factors of short and long texts.
func (m *Phimoe) scaleByLength(o object) {
	in, ok := o.object("rope_scaling")
	if !ok {
		in, _ = o.object("rope_parameters")
	}
	for _, f := range []struct {
		key string
		to  *float64
	}{{"short_mscale", &m.Rope.ShortScale}, {"long_mscale", &m.Rope.LongScale}} {
		if !in.has(f.key) {
			in.missing(f.key)
		}
		*f.to = in.above(f.key, 1, 0)
	}
}

// Facts implements [Model].
func (m *Phimoe) Facts() Facts { return m.facts("phimoe", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Phimoe) Table() Table {
	hidden := int64(m.Hidden)
	last := func(t *Table, name string) { t.layerNorm(name, hidden) }
	t := m.decoderWith("phimoe", last, func(t *Table, layer string, _ int) {
		t.layerNorm(layer+"input_layernorm", hidden)
		m.projections(t, layer+"self_attn", m.queries())
		t.layerNorm(layer+"post_attention_layernorm", hidden)
		t.mixture(layer+"mlp", m.Mixture, m.Hidden)
	})
	t.also(append([][]string{{".mlp.gate.", ".mlp.router."}}, blockSparse...)...)
	if m.HeadBias {
		m.headBias(&t)
	}
	return t
}

// Decoder implements [Described].
func (m *Phimoe) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		Norm:     decoder.Norm{LayerNorm: true, Bias: true},
		HeadBias: m.HeadBias,
	}}
}
