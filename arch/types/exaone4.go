package types

import (
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Exaone4 is the configuration of model type "exaone4" (EXAONE 4.0): norms after attention and MLP instead of before
// them, norms of query and key heads, and in large models three sliding layers before each full one, which has no rope.
// Absent keys have the defaults of transformers 5.23; sizes are required.
type Exaone4 struct {
	config.Dense
	Hybrid bool // it has a window, so full layers have no rope
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "exaone4",
		Plain:         true,
		Architectures: []string{"Exaone4ForCausalLM"},
		GGUF:          []gguf.Map{ggufExaone4},
		Docs: arch.Docs{
			Variants: "sliding layers and full ones without rope (32B), neither (1.2B), tied embeddings",
		},
	}, ParseExaone4)
}

// ParseExaone4 parses the config.json of an exaone4 model.
func ParseExaone4(data []byte) (*Exaone4, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "Exaone4ForCausalLM", Context: 2048, NormEps: 1e-5, BOS: []int32{0}, EOS: []int32{2}}
	m := &Exaone4{Dense: config.ParseDense(top, o, d, config.RopeOptions{}, config.SiLU...)}
	m.AttentionBias, m.OutputBias = false, false
	window := o.Window("sliding_window", 4096)
	if m.Hybrid = window > 0; m.Hybrid {
		m.Slide(window, exaonePattern(o, m.Layers))
	}
	return config.Done(m, o)
}

// exaonePattern is ParsePattern, whose number may also be a word of L for sliding and G for full layers, repeated.
func exaonePattern(o config.Object, layers int) []bool {
	const key = "sliding_window_pattern"
	if text := strings.TrimSpace(string(o.Keys[key])); !strings.HasPrefix(text, `"`) || o.Has("layer_types") {
		if strings.HasPrefix(text, `"`) {
			delete(o.Keys, key)
		}
		return config.ParsePattern(o, layers, 4)
	}
	word := o.String(key, "")
	if word == "" || strings.Trim(word, "LG") != "" {
		o.Fail(key, "be a number or a word of L and G")
		return make([]bool, layers)
	}
	sliding := make([]bool, layers)
	for i := range sliding {
		sliding[i] = word[i%len(word)] == 'L'
	}
	return sliding
}

// Rotates reports whether a layer has a rope.
func (m *Exaone4) Rotates(i int) bool { return !m.Hybrid || m.Window > 0 && m.Sliding[i] }

func (m *Exaone4) Facts() config.Facts { return m.FactsAs("exaone4", m.Rope, m.Table()) }

func (m *Exaone4) Table() table.Table { return m.Decoder().Table("exaone4") }

func (m *Exaone4) Decoder() config.Decoder {
	d := decoder.Description{Norms: decoder.After, HeadNorms: decoder.QK}
	if m.Hybrid {
		d.RopeLayers = m.SlidingLayers()
	}
	return config.Decoder{Dense: &m.Dense, Description: d}
}

// ggufExaone4 is the mapping of exaone4.
var ggufExaone4 = gguf.Map{
	Architecture: "exaone4",
	Limits:       gguf.Limits{Square: true},
	Config: map[string]any{
		"model_type": "exaone4", "architectures": []string{"Exaone4ForCausalLM"}, "sliding_window": nil,
	},
	Refuse: func(m gguf.Model) string {
		if q, ok := m.(*Exaone4); ok && q.Window > 0 && q.Layers != 64 {
			return "has windows in a model of 64 layers only"
		}
		return ""
	},
	Keys: gguf.Keys(gguf.Key{Key: "attention.sliding_window", To: "sliding_window", Field: "Window", Optional: true}),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.MLP, gguf.Names(gguf.Op{},
		"attn_q_norm.weight", "self_attn.q_norm.weight", "attn_k_norm.weight", "self_attn.k_norm.weight",
		"post_attention_norm.weight", "post_attention_layernorm.weight",
		"post_ffw_norm.weight", "post_feedforward_layernorm.weight")),
	Adjust: func(c map[string]any, f gguf.File) error {
		gguf.SetSliding(c, "exaone4", f)
		return gguf.SetFactors(c, f)
	},
}
