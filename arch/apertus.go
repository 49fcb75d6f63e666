package arch

import "encoding/json"

// Apertus is the configuration of model type "apertus": a pre-norm decoder with norms of query and key heads, and a
// plain MLP with the activation function xIELU, which has parameters. Absent keys have the defaults of transformers
// 5.23; sizes are required.
type Apertus struct{ Dense }

func init() {
	register(Arch{
		ModelType:     "apertus",
		Architectures: []string{"ApertusForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseApertus(config) },
		GGUF:          []GGUF{ggufApertus},
		Docs:          Docs{Variants: "xIELU with parameters by layer, biases, tied embeddings"},
	})
}

// ParseApertus parses the config.json of an apertus model.
func ParseApertus(config []byte) (*Apertus, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	if !o.has("rope_parameters") && !o.has("rope_scaling") {
		// Its theta wins over rope_theta, as in transformers.
		o.raw["rope_parameters"] = json.RawMessage(`{"rope_type": "llama3", "rope_theta": 12e6, "factor": 8,
			"original_max_position_embeddings": 8192, "low_freq_factor": 1, "high_freq_factor": 4}`)
	}
	d := commonDefaults{class: "ApertusForCausalLM", ctx: 1 << 16, eps: 1e-5, bos: []int32{1}, eos: []int32{2}}
	return parsed(&Apertus{parseDense(top, o, d, ropeOptions{theta: 12e6}, "xielu")}, o)
}

// Facts implements [Model].
func (m *Apertus) Facts() Facts { return m.facts("apertus", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Apertus) Table() Table {
	hidden := int64(m.Hidden)
	return m.decoder("apertus", false, func(t *Table, layer string, _ int) {
		t.norm(layer+"attention_layernorm", hidden, false)
		m.attention(t, layer+"self_attn", m.queries(), false)
		t.norm(layer+"feedforward_layernorm", hidden, false)
		m.plainMLP(t, layer+"mlp.up_proj", layer+"mlp.down_proj")
		for _, name := range []string{"alpha_p", "alpha_n", "beta", "eps"} {
			s := t.add(layer+"mlp.act_fn."+name, replicated, 1)
			s.Reshape = [][]int64{{}} // transformers saves constants without dimensions
		}
	})
}
