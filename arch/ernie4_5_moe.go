package arch

import "github.com/ingotml/ingot/arch/decoder"

// Ernie45Moe is the configuration of model type "ernie4_5_moe": a pre-norm decoder whose rope rotates pairs of adjacent
// channels, with experts of a softmax router with a correction, and shared experts. Absent keys have the defaults of
// transformers 5.23; sizes are required.
type Ernie45Moe struct {
	Dense
	Mixture  Mixture
	HeadBias bool
}

func init() {
	register(Arch{
		ModelType:     "ernie4_5_moe",
		Plain:         true,
		Architectures: []string{"Ernie4_5_MoeForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseErnie45Moe(config) },
		GGUF:          []GGUF{ggufErnie45Moe},
		Docs: Docs{
			Variants: "shared experts, dense layers in between, biases everywhere, untied embeddings",
			Rules:    "generic, also for experts",
		},
	})
}

// maxNormMin bounds the least sum that the weights of chosen experts are divided by. Sums of softmax values are larger.
const maxNormMin = 1e-6

// ParseErnie45Moe parses the config.json of an ernie4_5_moe model.
func ParseErnie45Moe(config []byte) (*Ernie45Moe, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Ernie45Moe{Dense: parseDecoder(top, o, commonDefaults{
		class: "Ernie4_5_MoeForCausalLM", kv: 4, ctx: 1 << 17, eps: 1e-5, tied: true, bos: []int32{1}, eos: []int32{2},
	}, ropeOptions{theta: 5e5})}
	bias := o.boolean("use_bias", false)
	m.AttentionBias, m.OutputBias, m.MLPBias, m.HeadBias = bias, bias, bias, bias
	m.Intermediate = o.integer("intermediate_size", 12288, 1, maxWidth)
	x := &m.Mixture
	x.parseExperts(o, m.Common, mixtureDefaults{count: 64, perToken: 6, width: 1536}, "moe_intermediate_size")
	x.Experts.NormTopK = true
	x.Router = Router{Correction: true, Float32: true}
	x.Shared = o.integer("moe_num_shared_experts", 2, 0, 64) * x.Experts.Intermediate
	x.SharedBias = bias
	o.number("moe_norm_min", 1e-12, func(v float64) bool { return v >= 0 && v <= maxNormMin }, "be from 0 to 1e-6")
	first, every := o.integer("moe_layer_start_index", 1, 0, maxLayers), o.integer("moe_layer_interval", 1, 1, maxLayers)
	last := o.integer("moe_layer_end_index", -1, -1, maxLayers)
	for i := range x.Sparse {
		x.Sparse[i] = (i+1)%every == 0 && i >= first && (i <= last || last == -1)
	}
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Ernie45Moe) Facts() Facts { return m.facts("ernie4_5_moe", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Ernie45Moe) Table() Table {
	t := m.decodes("ernie4_5_moe", m.Mixture, nil)
	const bias = "e_score_correction_bias"
	t.also([]string{".mlp.gate." + bias, ".mlp.moe_statics." + bias},
		[]string{".mlp.gate." + bias, ".mlp.gate.moe_statics." + bias})
	for i := range t.Specs {
		if s := &t.Specs[i]; len(s.Aliases) > 0 && len(s.Shape) == 1 && s.Shape[0] == int64(m.Mixture.Experts.Count) {
			s.Reshape = [][]int64{{1, s.Shape[0]}}
		}
	}
	if m.HeadBias {
		m.headBias(&t)
	}
	t.leaveOut("mtp", "a head for tokens after the next, which is not supported for ernie4_5_moe", m.Prefix+"mtp_*")
	return t
}

// Decoder implements [Described].
func (m *Ernie45Moe) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		Interleaved: true,
		HeadBias:    m.HeadBias,
	}}
}
