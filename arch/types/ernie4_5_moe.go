package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Ernie45Moe is the configuration of model type "ernie4_5_moe": a pre-norm decoder whose rope rotates pairs of adjacent
// channels, with experts of a softmax router with a correction, and shared experts. Absent keys have the defaults of
// transformers 5.23; sizes are required.
type Ernie45Moe struct {
	config.Dense
	Mixture  config.Mixture
	HeadBias bool
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "ernie4_5_moe",
		Plain:         true,
		Architectures: []string{"Ernie4_5_MoeForCausalLM"},
		GGUF:          []gguf.Map{ggufErnie45Moe},
		Published:     table.Published{Experts: table.PerExpert, HuggingFace: ernieBias, MLX: ernieBias},
		Docs: arch.Docs{
			Variants: "shared experts, dense layers in between, biases everywhere, untied embeddings",
			Rules:    "generic, also for experts",
		},
	}, ParseErnie45Moe)
}

// maxNormMin bounds the least sum that the weights of chosen experts are divided by. Sums of softmax values are larger.
const maxNormMin = 1e-6

// ParseErnie45Moe parses the config.json of an ernie4_5_moe model.
func ParseErnie45Moe(data []byte) (*Ernie45Moe, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Ernie45Moe{Dense: config.ParseDecoder(top, o, config.Defaults{
		Class: "Ernie4_5_MoeForCausalLM", KVHeads: 4, Context: 1 << 17, NormEps: 1e-5, Tied: true, BOS: []int32{1},
		EOS: []int32{2},
	}, config.RopeOptions{Theta: 5e5})}
	bias := o.Bool("use_bias", false)
	m.AttentionBias, m.OutputBias, m.MLPBias, m.HeadBias = bias, bias, bias, bias
	m.Intermediate = o.Integer("intermediate_size", 12288, 1, config.MaxWidth)
	x := &m.Mixture
	x.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 64, PerToken: 6, Width: 1536}, "moe_intermediate_size")
	x.Experts.NormTopK = true
	x.Router = config.Router{Correction: true, Float32: true}
	x.Shared = o.Integer("moe_num_shared_experts", 2, 0, 64) * x.Experts.Intermediate
	x.SharedBias = bias
	o.Number("moe_norm_min", 1e-12, func(v float64) bool { return v >= 0 && v <= maxNormMin }, "be from 0 to 1e-6")
	first, every := o.Integer("moe_layer_start_index", 1, 0, config.MaxLayers), o.Integer("moe_layer_interval", 1, 1,
		config.MaxLayers)
	last := o.Integer("moe_layer_end_index", -1, -1, config.MaxLayers)
	for i := range x.Sparse {
		x.Sparse[i] = (i+1)%every == 0 && i >= first && (i <= last || last == -1)
	}
	return config.Done(m, o)
}

func (m *Ernie45Moe) Facts() config.Facts { return m.FactsAs("ernie4_5_moe", m.Rope, m.Table()) }

func (m *Ernie45Moe) Table() table.Table {
	t := m.Decoder().Table("ernie4_5_moe")
	const bias = "e_score_correction_bias"
	t.Also([]string{".mlp.gate." + bias, ".mlp.moe_statics." + bias},
		[]string{".mlp.gate." + bias, ".mlp.gate.moe_statics." + bias})
	for i := range t.Specs {
		if s := &t.Specs[i]; len(s.Aliases) > 0 && len(s.Shape) == 1 && s.Shape[0] == int64(m.Mixture.Experts.Count) {
			s.Reshape = [][]int64{{1, s.Shape[0]}}
		}
	}
	t.LeaveOut("mtp", "a head for tokens after the next, which is not supported for ernie4_5_moe", m.Prefix+"mtp_*")
	return t
}

func (m *Ernie45Moe) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		Interleaved: true,
		HeadBias:    m.HeadBias,
	}}
}

// ggufErnie45Moe is the mapping of ernie4_5_moe, which has the changes of llama: rows of heads are in halves there.
var ggufErnie45Moe = gguf.Map{
	Architecture: "ernie4_5-moe",
	Limits:       gguf.Limits{Biases: gguf.AttentionBiases},
	Config: map[string]any{
		"model_type": "ernie4_5_moe", "architectures": []string{"Ernie4_5_MoeForCausalLM"},
	},
	Keys: gguf.CountKeys("moe_num_experts",
		gguf.Key{Key: "expert_feed_forward_length", To: "moe_intermediate_size", Field: "Experts.Intermediate"},
		gguf.Key{Key: "expert_shared_count", To: "moe_num_shared_experts", Optional: true},
		gguf.Key{Key: "leading_dense_block_count", To: "moe_layer_start_index", Optional: true},
		gguf.Key{Key: "interleave_moe_layer_step", To: "moe_layer_interval", Optional: true},
	),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.MLP, gguf.PreNorms, gguf.MoE,
		gguf.SharedExperts,
		[]gguf.Tensor{{Name: "output.bias", To: "lm_head.bias"}}),
	Adjust: func(c map[string]any, f gguf.File) error {
		_, c["use_bias"] = f.Shape("blk.0.attn_q.bias")
		return nil
	},
}

// ernieBias are the published names of tensors, after those of the table.
var ernieBias = []string{".mlp.gate.e_score_correction_bias", table.PublishedRow}
