package types

import (
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Qwen2 is the configuration of model type "qwen2": a pre-norm decoder with grouped-query attention, biases of queries,
// keys and values, and a gated MLP. Absent keys have the defaults of transformers 5.23; sizes are required.
type Qwen2 struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType: "qwen2",
		Plain:     true,
		Aliases:   []string{"qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "qwen2_audio", "mimo"},
		Towers:    []string{"qwen2_vl", "qwen2_5_vl", "qwen2_audio"},
		Architectures: []string{
			"Qwen2ForCausalLM", "Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration",
			"Qwen2AudioForConditionalGeneration", "MiMoForCausalLM",
		},
		GGUF:        []gguf.Map{ggufQwen2},
		Equalizable: true,
		Idle: []arch.Idle{
			{Why: "it needs use_sliding_window", Keys: []string{"max_window_layers", "sliding_window"}},
		},
		Defaults: map[string]map[string]string{
			"qwen2_vl": qwen2VLDefaults, "qwen2_vl_text": qwen2VLDefaults, "qwen2_5_vl": qwen2VLDefaults,
			"qwen2_5_vl_text": qwen2VLDefaults,
		},
		Docs: arch.Docs{
			Variants: "tied embeddings, sliding windows by `max_window_layers` or `layer_types`; " +
				"text of Qwen2-VL, Qwen2.5-VL and Qwen2-Audio; MiMo 7B without its head that drafts",
		},
	}, ParseQwen2)
}

// ParseQwen2 parses the config.json of a qwen2 model. The biases are there whatever the file says.
func ParseQwen2(data []byte) (*Qwen2, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{
		Class: "Qwen2ForCausalLM", Vocab: 151936, Hidden: 4096, Layers: 32, Heads: 32, Context: 32768, NormEps: 1e-6,
	}
	m := &Qwen2{config.ParseDense(top, o, d, config.RopeOptions{}, config.SiLU...)}
	m.AttentionBias, m.OutputBias = true, false
	m.Slide(config.ParseWindow(o, m.Layers, o.Integer("max_window_layers", 28, 0, config.MaxLayers)))
	return config.Done(m, o)
}

func (m *Qwen2) Facts() config.Facts { return m.FactsAs("qwen2", m.Rope, m.Table()) }

func (m *Qwen2) Table() table.Table {
	t := m.Decoder().Table("qwen2")
	config.DropTowers(&t, "qwen2")
	t.LeaveOut("mtp_layers", "predicts further tokens, which is not supported for this type", m.Prefix+"mtp_layers.*")
	return t
}

func (m *Qwen2) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense}
}

// ggufQwen2 is the mapping of qwen2.
var ggufQwen2 = gguf.Map{
	Architecture: "qwen2",
	Limits:       gguf.Limits{Square: true},
	Config: map[string]any{
		"model_type": "qwen2", "architectures": []string{"Qwen2ForCausalLM"}, "use_sliding_window": false,
	},
	Keys:    gguf.Keys(),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.MLP, gguf.PreNorms),
}

// qwen2VLDefaults are the values of absent keys where transformers' class differs. A rope_theta beside the parameters
// of the rope is what they lack.
var qwen2VLDefaults = map[string]string{
	"rms_norm_eps": "1e-5", "rope_theta": "1e6", "bos_token_id": "151643", "eos_token_id": "151645",
}
