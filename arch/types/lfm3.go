package types

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/table"
)

// Lfm3 is the configuration of model type "lfm3": layers of attention, some in a window, or a gated short convolution,
// each with a gated feed-forward block. Norms surround both, and a gate of each head multiplies the attention's output.
// Absent keys have the defaults of transformers 5.23; sizes are required.
type Lfm3 struct {
	config.Dense        // Rope is of full layers
	Full         []bool // by layer: attention, else a convolution
	SlidingRope  config.Rope
	Taps         int  // size of the convolutions
	ConvBias     bool // biases of the convolutions, and of the projections around them
	Sandwich     bool // norms of the outputs of attention, convolutions and feed-forward blocks
	Gate         bool // of the output of attention
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "lfm3",
		Architectures: []string{"Lfm3ForCausalLM"},
		Idle: []arch.Idle{
			{Why: "no rope of the type has a context before scaling", Keys: []string{"original_max_position_embeddings"}},
		},
		Docs: arch.Docs{
			Variants: "short convolutions with some layers of attention, full or sliding, with a rope each; gates of heads, " +
				"norms of outputs; biases, tied embeddings",
		},
	}, ParseLfm3)
}

// ParseLfm3 parses the config.json of an lfm3 model.
func ParseLfm3(data []byte) (*Lfm3, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	o = o.Renamed("rms_norm_eps", "norm_eps")
	m := Lfm3{
		Dense: config.Dense{
			Common: config.ParseCommon(top, o, config.Defaults{
				Class: "Lfm3ForCausalLM", KVHeads: 4, HeadDim: 128, Context: 128000, NormEps: 1e-5, Tied: true,
				BOS: []int32{124894},
				EOS: []int32{124900},
			}),
			Intermediate: o.Size("intermediate_size", 0, config.MaxWidth),
			Activation:   config.SiLU[0],
		},
		Taps:     o.Integer("conv_L_cache", 7, 2, config.MaxTaps),
		ConvBias: o.Bool("conv_bias", false),
		Sandwich: o.Bool("use_sandwich_norm", true),
		Gate:     o.Bool("use_attention_gate", true),
	}
	m.NormName = "embedding_norm"
	m.parseLayers(o)
	full := config.RopeOptions{
		Types: gemma4Ropes, Theta: 1e6, HeadDim: m.HeadDim, Kind: config.RopeProportional, Partial: 0.5, Inherit: true,
	}
	sliding := config.RopeOptions{Types: gemma4Ropes, Theta: 1e4, HeadDim: m.HeadDim, Inherit: true}
	if o.Has("rope_parameters") {
		sliding.Theta = full.Theta // the default of all parameters that are given
	}
	m.Rope = config.ParseLayerRope(o, config.FullAttention, config.Object{}, m.Context, full)
	m.SlidingRope = config.ParseLayerRope(o, config.SlidingAttention, config.Object{}, m.Context, sliding)
	return config.Done(&m, o)
}

// parseLayers reads which layers are attention, and which of these slide.
func (m *Lfm3) parseLayers(o config.Object) {
	kinds := o.Words("layer_types", m.Layers, config.ConvLayer, config.FullAttention, config.SlidingAttention)
	if kinds == nil {
		kinds = make([]string, m.Layers)
		for i := range kinds {
			switch {
			case i%4 == 2:
				kinds[i] = config.FullAttention
			case i%4 == 0 && i > 0:
				kinds[i] = config.SlidingAttention
			default:
				kinds[i] = config.ConvLayer
			}
		}
	}
	m.Full = make([]bool, m.Layers)
	for i, kind := range kinds {
		m.Full[i] = kind != config.ConvLayer
	}
	m.Slide(o.Window("sliding_window", 256), config.SlidingOf(kinds))
}

// State implements [arch.Model]. A convolution keeps its last inputs.
func (m *Lfm3) State() []config.LayerState {
	list := m.Dense.State()
	for i, full := range m.Full {
		if !full {
			list[i] = config.LayerState{Fixed: int64(m.Taps-1) * int64(m.Hidden)}
		}
	}
	return list
}

func (m *Lfm3) Facts() config.Facts { return m.FactsAs("lfm3", m.Rope, m.Table()) }

func (m *Lfm3) Table() table.Table {
	hidden := int64(m.Hidden)
	t := m.TableOf("lfm3", false, func(t *table.Table, layer string, i int) {
		t.Norm(layer+"operator_norm", hidden, false)
		if m.Full[i] {
			m.AddAttention(t, layer+"self_attn", m.QueryWidth(), false)
			if m.Gate {
				t.Linear(layer+"self_attn.gate_proj", int64(m.Heads), hidden, false, table.QueryRows(m.Heads, m.KVHeads))
			}
		} else {
			config.AddShortConv(t, layer+"conv", m.Taps, hidden, m.ConvBias)
		}
		t.Norm(layer+"ffn_norm", hidden, false)
		m.AddMLP(t, layer+"feed_forward", m.Intermediate)
		if m.Sandwich {
			t.Norm(layer+"post_operator_norm", hidden, false)
			t.Norm(layer+"post_ffn_norm", hidden, false)
		}
	})
	t.Publishes(table.Naming{Layout: table.Fused, Names: []string{
		".feed_forward.gate_proj.", ".feed_forward.w1.", ".feed_forward.up_proj.", ".feed_forward.w3.",
		".feed_forward.down_proj.", ".feed_forward.w2.",
	}})
	return t
}

// Decoder implements [arch.Described].
func (m *Lfm3) Decoder() config.Decoder {
	d := config.Decoder{Dense: &m.Dense, SlidingRope: &m.SlidingRope, Description: decoder.Description{
		Norms:   decoder.Norms{Mixer: "operator_norm", Network: "ffn_norm"},
		Network: "feed_forward",
	}}
	if m.Sandwich {
		d.Norms.MixerPost, d.Norms.NetworkPost = "post_operator_norm", "post_ffn_norm"
	}
	if d.HeadNorms = decoder.QK; m.Gate {
		d.Gate = "gate_proj"
	}
	return d
}
