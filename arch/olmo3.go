package arch

import "github.com/ingotml/ingot/arch/decoder"

// Olmo3 is the configuration of model type "olmo3": olmo2 with three sliding layers before each full one. Scaling of
// the rope is for full layers only. Absent keys have the defaults of transformers 5.23; sizes are required.
type Olmo3 struct {
	Dense            // its rope is that of full layers
	SlidingRope Rope // of sliding layers
}

func init() {
	register(Arch{
		ModelType:     "olmo3",
		Plain:         true,
		Architectures: []string{"Olmo3ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseOlmo3(config) },
		GGUF:          []GGUF{ggufOlmo2},
		// In GGUF files it is an olmo2 with a window.
		Docs: Docs{Variants: "sliding layers with their own rope, biases, tied embeddings"},
	})
}

// ParseOlmo3 parses the config.json of an olmo3 model.
func ParseOlmo3(config []byte) (*Olmo3, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Olmo3{Dense: Dense{
		Common: parseCommon(top, o, commonDefaults{
			class: "Olmo3ForCausalLM", ctx: 2048, eps: 1e-5, eos: []int32{50279},
		}),
		Intermediate: o.size("intermediate_size", 0, maxWidth),
		Activation:   o.activation("hidden_act", silu...),
	}}
	opts := ropeOptions{headDim: m.HeadDim, theta: o.theta("rope_theta", 5e5)}
	scaling, _ := o.object("rope_scaling")
	m.Rope = parseLayerRope(o, fullAttention, scaling, m.Context, opts)
	opts.theta = 5e5 // rope_theta is for full layers
	m.SlidingRope = parseLayerRope(o, slidingAttention, object{}, m.Context, opts)
	sliding := parsePattern(o, m.Layers, 4)
	m.slide(o.integer("sliding_window", 4096, 1, maxContext), sliding)
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Olmo3) Facts() Facts { return m.facts("olmo3", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Olmo3) Table() Table { return m.postNorm("olmo3") }

// Decoder implements [Described].
func (m *Olmo3) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, SlidingRope: &m.SlidingRope, Description: decoder.Description{
		HeadNorms: decoder.HeadNorms{Q: "q_norm", K: "k_norm", Over: decoder.Row},
		Norms:     decoder.After,
	}}
}
