package arch

import (
	"strings"

	"github.com/ingotml/ingot/arch/decoder"
)

// Exaone4 is the configuration of model type "exaone4" (EXAONE 4.0): norms after attention and MLP instead of before
// them, norms of query and key heads, and in large models three sliding layers before each full one, which has no rope.
// Absent keys have the defaults of transformers 5.23; sizes are required.
type Exaone4 struct {
	Dense
	Hybrid bool // it has a window, so full layers have no rope
}

func init() {
	register(Arch{
		ModelType:     "exaone4",
		Plain:         true,
		Architectures: []string{"Exaone4ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseExaone4(config) },
		GGUF:          []GGUF{ggufExaone4},
		Docs:          Docs{Variants: "sliding layers and full ones without rope (32B), neither (1.2B), tied embeddings"},
	})
}

// ParseExaone4 parses the config.json of an exaone4 model.
func ParseExaone4(config []byte) (*Exaone4, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{class: "Exaone4ForCausalLM", ctx: 2048, eps: 1e-5, bos: []int32{0}, eos: []int32{2}}
	m := &Exaone4{Dense: parseDense(top, o, d, ropeOptions{}, silu...)}
	m.AttentionBias, m.OutputBias = false, false
	window := o.window("sliding_window", 4096)
	if m.Hybrid = window > 0; m.Hybrid {
		m.slide(window, exaonePattern(o, m.Layers))
	}
	return parsed(m, o)
}

// exaonePattern is parsePattern, whose number may also be a word of L for sliding and G for full layers, repeated.
func exaonePattern(o object, layers int) []bool {
	const key = "sliding_window_pattern"
	if text := strings.TrimSpace(string(o.raw[key])); !strings.HasPrefix(text, `"`) || o.has("layer_types") {
		if strings.HasPrefix(text, `"`) {
			delete(o.raw, key)
		}
		return parsePattern(o, layers, 4)
	}
	word := o.str(key, "")
	if word == "" || strings.Trim(word, "LG") != "" {
		o.fail(key, "be a number or a word of L and G")
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

// Facts implements [Model].
func (m *Exaone4) Facts() Facts { return m.facts("exaone4", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Exaone4) Table() Table {
	hidden := int64(m.Hidden)
	return m.decoder("exaone4", false, func(t *Table, layer string, _ int) {
		m.attention(t, layer+"self_attn", m.queries(), false)
		t.norm(layer+"post_attention_layernorm", hidden, false)
		m.mlp(t, layer+"mlp", m.Intermediate)
		t.norm(layer+"post_feedforward_layernorm", hidden, false)
	})
}

// Decoder implements [Described].
func (m *Exaone4) Decoder() Decoder {
	d := decoder.Description{Norms: decoder.After, HeadNorms: decoder.QK}
	if m.Hybrid {
		d.RopeLayers = m.slidingLayers()
	}
	return Decoder{Dense: &m.Dense, Description: d}
}
