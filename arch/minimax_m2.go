package arch

import (
	"encoding/json"
	"maps"
	"strconv"

	"github.com/ingotml/ingot/arch/decoder"
)

// MiniMaxM2 is the configuration of model type "minimax_m2": a pre-norm decoder with norms of whole rows of queries and
// keys, a rope that rotates a part of each head, and experts of a sigmoid router in every layer. Absent keys have the
// defaults of transformers 5.23; sizes are required.
type MiniMaxM2 struct {
	Dense
	Mixture Mixture
}

func init() {
	register(Arch{
		ModelType:     "minimax_m2",
		Plain:         true,
		Architectures: []string{"MiniMaxM2ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseMiniMaxM2(config) },
		GGUF:          []GGUF{ggufMiniMaxM2},
		Docs: Docs{
			Variants: "experts named `w1` to `w3`, partial rope by `rotary_dim` or `partial_rotary_factor`",
			Rules:    "generic, also for experts",
		},
	})
}

// ParseMiniMaxM2 parses the config.json of a minimax_m2 model.
func ParseMiniMaxM2(config []byte) (*MiniMaxM2, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	o = rotaryDim(o, 128)
	m := &MiniMaxM2{Dense: parseDecoder(top, o, commonDefaults{
		class: "MiniMaxM2ForCausalLM", kv: 8, dim: 128, ctx: 196608, eps: 1e-6, bos: []int32{200034}, eos: []int32{200020},
	}, ropeOptions{theta: 5e6, partial: 1})}
	m.AttentionBias, m.OutputBias = false, false
	x := &m.Mixture
	x.parseExperts(o, m.Common, mixtureDefaults{count: 256, perToken: 8}, "intermediate_size")
	x.Experts.NormTopK = true
	x.Router = Router{Sigmoid: true, Correction: true, Float32: true}
	if f := o.str("scoring_func", "sigmoid"); f != "sigmoid" {
		o.fail("scoring_func", `be "sigmoid"`)
	}
	if o.has("use_qk_norm") && !o.boolean("use_qk_norm", true) {
		o.fail("use_qk_norm", "be true")
	}
	return parsed(m, o)
}

// rotaryDim replaces rotary_dim, a number of channels of a head of size dim, by partial_rotary_factor.
func rotaryDim(o object, dim int) object {
	const key, part = "rotary_dim", "partial_rotary_factor"
	if !o.has(key) || o.has(part) {
		return o
	}
	dim = o.integer("head_dim", dim, 1, maxHeadDim)
	rotated := o.integer(key, dim, 2, dim)
	o.raw = maps.Clone(o.raw)
	o.raw[part] = json.RawMessage(strconv.FormatFloat(float64(rotated)/float64(dim), 'g', -1, 64))
	return o
}

// Facts implements [Model].
func (m *MiniMaxM2) Facts() Facts { return m.facts("minimax_m2", m.Rope, m.Table()) }

// Table implements [Model].
func (m *MiniMaxM2) Table() Table {
	t := m.decodes("minimax_m2", m.Mixture, m.wholeNorms)
	const bias = "e_score_correction_bias"
	t.also(append([][]string{
		{".mlp.gate." + bias, ".block_sparse_moe." + bias}, {".mlp.gate." + bias, ".mlp." + bias},
	}, blockSparse...)...)
	return t
}

// Decoder implements [Described].
func (m *MiniMaxM2) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		HeadNorms: decoder.HeadNorms{Q: "q_norm", K: "k_norm", Over: decoder.Row},
	}}
}
