package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Olmo3 is the configuration of model type "olmo3": olmo2 with three sliding layers before each full one. Scaling of
// the rope is for full layers only. Absent keys have the defaults of transformers 5.23; sizes are required.
type Olmo3 struct {
	config.Dense             // its rope is that of full layers
	SlidingRope  config.Rope // of sliding layers
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "olmo3",
		Plain:         true,
		Architectures: []string{"Olmo3ForCausalLM"},
		GGUF:          []gguf.Map{ggufOlmo2},
		// In GGUF files it is an olmo2 with a window.
		Idle: []arch.Idle{
			{Why: "its ropes rotate whole heads", Keys: []string{"partial_rotary_factor"}},
			{Why: "no rope of the type has a context before scaling", Keys: []string{"original_max_position_embeddings"}},
		},
		Docs: arch.Docs{Variants: "sliding layers with their own rope, biases, tied embeddings"},
	}, ParseOlmo3)
}

// ParseOlmo3 parses the config.json of an olmo3 model.
func ParseOlmo3(data []byte) (*Olmo3, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Olmo3{Dense: config.Dense{
		Common: config.ParseCommon(top, o, config.Defaults{
			Class: "Olmo3ForCausalLM", Context: 2048, NormEps: 1e-5, EOS: []int32{50279},
		}),
		Intermediate: o.Size("intermediate_size", 0, config.MaxWidth),
		Activation:   o.Activation("hidden_act", config.SiLU...),
	}}
	opts := config.RopeOptions{HeadDim: m.HeadDim, Theta: o.Theta("rope_theta", 5e5)}
	scaling, _ := o.Object("rope_scaling")
	m.Rope = config.ParseLayerRope(o, config.FullAttention, scaling, m.Context, opts)
	opts.Theta = 5e5 // rope_theta is for full layers
	m.SlidingRope = config.ParseLayerRope(o, config.SlidingAttention, config.Object{}, m.Context, opts)
	sliding := config.ParsePattern(o, m.Layers, 4)
	m.Slide(o.Integer("sliding_window", 4096, 1, config.MaxContext), sliding)
	return config.Done(m, o)
}

func (m *Olmo3) Facts() config.Facts { return m.FactsAs("olmo3", m.Rope, m.Table()) }

func (m *Olmo3) Table() table.Table { return m.Decoder().Table("olmo3") }

func (m *Olmo3) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, SlidingRope: &m.SlidingRope, Description: decoder.Description{
		HeadNorms: decoder.HeadNorms{Q: "q_norm", K: "k_norm", Over: decoder.Row},
		Norms:     decoder.After,
	}}
}
