package types

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Glm4 is the configuration of model type "glm4" (GLM-4-0414, GLM-Z1): glm with further norms after attention and MLP.
// Absent keys have the defaults of transformers 5.23; sizes are required.
type Glm4 struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "glm4",
		Plain:         true,
		Aliases:       []string{"glm4v", "glm4v_text"},
		Towers:        []string{"glm4v"},
		Architectures: []string{"Glm4ForCausalLM", "Glm4vForConditionalGeneration"},
		GGUF:          []gguf.Map{ggufGlm4},
		Published:     table.Published{Projections: table.Fused},
		Variants: map[string]table.Published{
			"glm4v":      {},
			"glm4v_text": {},
		},
		Defaults: map[string]map[string]string{
			"glm4v": glm4VDefaults, "glm4v_text": glm4VDefaults,
		},
		Docs: arch.Docs{
			Variants: "partial interleaved rope, four norms, biases, tied embeddings; text of GLM-4.1V",
		},
	}, ParseGlm4)
}

// ParseGlm4 parses the config.json of a glm4 model.
func ParseGlm4(data []byte) (*Glm4, error) {
	d, o, err := parseGlmDense(data, "Glm4ForCausalLM")
	if err != nil {
		return nil, err
	}
	return config.Done(&Glm4{d}, o)
}

func (m *Glm4) Facts() config.Facts { return m.FactsAs("glm4", m.Rope, m.Table()) }

func (m *Glm4) Table() table.Table {
	t := m.Decoder().Table("glm4")
	fusesGateUp(&m.Dense, &t)
	config.DropTowers(&t, "glm4")
	return t
}

func (m *Glm4) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Description: decoder.Description{
		Interleaved: true,
		Norms: decoder.Norms{
			Mixer: "input_layernorm", MixerPost: "post_self_attn_layernorm",
			Network: "post_attention_layernorm", NetworkPost: "post_mlp_layernorm",
		},
	}}
}

// ggufGlm4 is the mapping of glm4. Files of multimodal models have other elements, and are refused.
var ggufGlm4 = gguf.Map{
	Architecture: "glm4",
	Config:       map[string]any{"model_type": "glm4", "architectures": []string{"Glm4ForCausalLM"}},
	Keys:         gguf.Keys(),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.Linears(gguf.Op{},
		"ffn_up", "mlp.gate_up_proj", "ffn_down", "mlp.down_proj"), gguf.Names(gguf.Op{},
		"attn_norm.weight", "input_layernorm.weight", "post_attention_norm.weight", "post_self_attn_layernorm.weight",
		"ffn_norm.weight", "post_attention_layernorm.weight", "post_ffw_norm.weight", "post_mlp_layernorm.weight")),
	Adjust: func(c map[string]any, f gguf.File) error {
		if v, ok := f.Value("glm4.rope.dimension_sections"); ok {
			return fmt.Errorf("glm4.rope.dimension_sections = %v: %w: glm4 of a multimodal model", gguf.Shown(v),
				arch.ErrUnknownArchitecture)
		}
		if err := gguf.SetPartial(c, "glm4", f); err != nil {
			return err
		}
		return gguf.SetBiases(c, f)
	},
}

// glm4VDefaults are the values of absent keys where transformers' class differs. A rope_theta beside the parameters of
// the rope is what they lack.
var glm4VDefaults = map[string]string{"rms_norm_eps": "1e-5", "max_position_embeddings": "32768"}
