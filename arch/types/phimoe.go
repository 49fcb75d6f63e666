package types

import (
	"encoding/json"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Phimoe is the configuration of model type "phimoe" (Phi-3.5 MoE): a pre-norm decoder with LayerNorms, and two
// experts per token of a router that masks scores (SparseMixer) in every layer. Absent keys have the defaults of
// transformers 5.23; sizes are required.
type Phimoe struct {
	config.Dense
	Mixture  config.Mixture
	HeadBias bool // a bias of the output head
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "phimoe",
		Plain:         true,
		Architectures: []string{"PhimoeForCausalLM", "PhiMoEForCausalLM"},
		GGUF:          []gguf.Map{ggufPhimoe},
		Published: table.Published{
			Experts:     table.PerExpert,
			HuggingFace: table.BlockSparse[1],
			MLX:         table.BlockSparse[0],
		},
		Docs: arch.Docs{
			Variants: "experts named `w1` to `w3`, biases, longrope, sliding window in all layers",
			Rules:    "generic, also for experts",
		},
	}, ParsePhimoe)
}

// ParsePhimoe parses the config.json of a phimoe model.
func ParsePhimoe(data []byte) (*Phimoe, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "PhimoeForCausalLM", KVHeads: 8, Context: 1 << 17, NormEps: 1e-5, BOS: []int32{1},
		EOS: []int32{2}}
	types := []config.RopeType{config.RopeDefault, config.RopeLong}
	m := &Phimoe{
		Dense:    config.ParseDecoder(top, o, d, config.RopeOptions{Types: types, Theta: 1e6}),
		HeadBias: o.Bool("lm_head_bias", false),
	}
	if m.Rope.Type == config.RopeLong {
		m.scaleByLength(o)
	}
	x := &m.Mixture
	x.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 16, PerToken: 2}, "intermediate_size")
	if x.Experts.PerToken != 2 {
		o.Fail("num_experts_per_tok", "be 2: the router chooses two experts, one after the other")
	}
	x.Router = config.Router{SparseMixer: true, Jitter: o.AtLeast("router_jitter_noise", 0.01, 0)}
	m.SlideEverywhere(o.Window("sliding_window", 0))
	return config.Done(m, o)
}

// scaleByLength reads the attention factors of short and long texts.
func (m *Phimoe) scaleByLength(o config.Object) {
	in, ok := o.Object("rope_scaling")
	if !ok {
		in, _ = o.Object("rope_parameters")
	}
	for _, f := range []struct {
		key string
		to  *float64
	}{{"short_mscale", &m.Rope.ShortScale}, {"long_mscale", &m.Rope.LongScale}} {
		if !in.Has(f.key) {
			in.Missing(f.key)
		}
		*f.to = in.Above(f.key, 1, 0)
	}
}

func (m *Phimoe) Facts() config.Facts { return m.FactsAs("phimoe", m.Rope, m.Table()) }

func (m *Phimoe) Table() table.Table {
	t := m.Decoder().Table("phimoe")
	t.Also(append([][]string{{".mlp.gate.", ".mlp.router."}}, table.BlockSparse...)...)
	return t
}

func (m *Phimoe) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		Norm:     decoder.Norm{LayerNorm: true, Bias: true},
		HeadBias: m.HeadBias,
	}}
}

// ggufPhimoe is the mapping of phimoe. A file has one attention factor for texts of all lengths.
var ggufPhimoe = gguf.Map{
	Architecture: "phimoe",
	Limits:       gguf.Limits{Biases: gguf.RequiredBiases},
	Config:       map[string]any{"model_type": "phimoe", "architectures": []string{"PhimoeForCausalLM"}},
	Keys: gguf.CountKeys("num_local_experts",
		gguf.Key{
			Key: "rope.scaling.original_context_length", To: "original_max_position_embeddings",
			Field: "Rope.OriginalMax", Optional: true,
		}),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.MoE, gguf.LayerNorms(gguf.Op{}), []gguf.Tensor{
		{Name: "output.bias", To: "lm_head.bias"},
		{Name: "rope_factors_short.weight", Why: "its factors are in config.json"},
		{Name: "rope_factors_long.weight", Why: "its factors are in config.json"},
	}),
	Refuse: func(m gguf.Model) string {
		if q, ok := m.(*Phimoe); ok && !q.HeadBias {
			return "has a bias of the output head"
		}
		return ""
	},
	Adjust: func(c map[string]any, f gguf.File) error {
		_, c["lm_head_bias"] = f.Shape("output.bias")
		if v, ok := f.Value("phimoe.attention.sliding_window"); ok && v != json.Number("0") {
			c["sliding_window"] = v
		}
		if err := gguf.SetBiases(c, f); err != nil {
			return err
		}
		if _, ok := f.Shape("rope_factors_short.weight"); !ok {
			return nil
		}
		scaling := map[string]any{"short_mscale": 1, "long_mscale": 1}
		if v, ok := f.Value("phimoe.rope.scaling.attn_factor"); ok {
			scaling["short_mscale"], scaling["long_mscale"] = v, v
		}
		return gguf.SetLongRope(c, scaling, f)
	},
}
