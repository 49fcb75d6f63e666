package types

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// Phi3 is the configuration of model type "phi3" (Phi-3, Phi-3.5, Phi-4): a pre-norm decoder whose rope rotates a part
// of each head and has two lists of factors (longrope). Checkpoints have queries, keys and values in one tensor, gate
// and up in another. Absent keys have the defaults of transformers 5.23; sizes are required.
type Phi3 struct{ config.Dense }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "phi3",
		Plain:         true,
		Architectures: []string{"Phi3ForCausalLM"},
		GGUF:          []gguf.Map{ggufPhi3},
		Published:     table.Published{Projections: table.Fused},
		Fixed: []arch.Fixed{
			{Key: "full_attn_mod", Values: []string{"1"}},
			{Key: "interpolate_factor", Values: []string{"1"}},
		},
		Docs: arch.Docs{
			Variants: "Phi-3, Phi-3.5, Phi-4: fused projections, partial rope, longrope, sliding window in all layers",
		},
	}, ParsePhi3)
}

// ParsePhi3 parses the config.json of a phi3 model.
func ParsePhi3(data []byte) (*Phi3, error) {
	return parsePhi3(data, config.Defaults{
		Class: "Phi3ForCausalLM", Context: 4096, NormEps: 1e-5, BOS: []int32{1}, EOS: []int32{32000},
	})
}

func parsePhi3(data []byte, d config.Defaults) (*Phi3, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	o = phi3Rope(o)
	types := []config.RopeType{config.RopeDefault, config.RopeLong}
	m := &Phi3{config.ParseDense(top, o, d, config.RopeOptions{Types: types, Partial: 1}, config.SiLU...)}
	m.AttentionBias, m.OutputBias = false, false
	m.SlideEverywhere(o.Window("sliding_window", 0))
	return config.Done(m, o)
}

// phi3Rope replaces the first published names of longrope, and adds the default of the context before scaling.
func phi3Rope(o config.Object) config.Object {
	o.Keys = maps.Clone(o.Keys)
	if key := "original_max_position_embeddings"; !o.Has(key) {
		o.Keys[key] = json.RawMessage("4096")
	}
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		in, ok := o.Object(key)
		if !ok {
			continue
		}
		for _, kind := range []string{"type", "rope_type"} {
			if s := in.String(kind, ""); s == "su" || s == "yarn" {
				in.Keys[kind] = json.RawMessage(`"longrope"`)
			}
		}
		if text, err := json.Marshal(in.Keys); err == nil {
			o.Keys[key] = text
		}
	}
	return o
}

func (m *Phi3) Facts() config.Facts { return m.FactsAs("phi3", m.Rope, m.Table()) }

func (m *Phi3) Table() table.Table {
	t := m.Decoder().Table("phi3")
	for i := range m.Layers {
		attention, mlp := m.LayerName(i)+"self_attn.", m.LayerName(i)+"mlp."
		t.Fuses(attention+"qkv_proj", attention+"q_proj", attention+"k_proj", attention+"v_proj")
		t.Fuses(mlp+"gate_up_proj", mlp+"gate_proj", mlp+"up_proj")
	}
	return t
}

func (m *Phi3) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense}
}

// ggufPhi3 is the mapping of phi3. The head size and the part of it that is rotated follow from other keys.
var ggufPhi3 = gguf.Map{
	Architecture: "phi3",
	Limits:       gguf.Limits{NoWindow: true, Square: true},
	Config:       map[string]any{"model_type": "phi3", "architectures": []string{"Phi3ForCausalLM"}},
	Keys: gguf.Keys(
		gguf.Key{Key: "rope.scaling.original_context_length", To: "original_max_position_embeddings",
			Field: "Rope.OriginalMax", Optional: true},
		gguf.Key{Key: "attention.sliding_window", To: "sliding_window", Field: "Window", Optional: true}),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.PreNorms, gguf.Linears(gguf.Op{},
		"attn_qkv", "self_attn.qkv_proj", "attn_output", "self_attn.o_proj",
		"ffn_up", "mlp.gate_up_proj", "ffn_down", "mlp.down_proj"),
		[]gguf.Tensor{
			{Name: gguf.ShortFactors, Why: "its factors are in config.json"},
			{Name: gguf.LongFactors, Why: "its factors are in config.json"},
		}),
	Adjust: adjustPhi3,
}

func adjustPhi3(c map[string]any, f gguf.File) error {
	hidden, errHidden := gguf.Number(c, "hidden_size")
	heads, errHeads := gguf.Number(c, "num_attention_heads")
	v, _ := f.Value("phi3.rope.dimension_count")
	n, _ := v.(json.Number)
	rotated, err := n.Int64()
	if errHidden != nil || errHeads != nil || err != nil || heads < 1 || hidden < heads {
		return fmt.Errorf("%w: phi3.rope.dimension_count = %v: want a part of a head", gguf.ErrMetadata, gguf.Shown(v))
	}
	c["partial_rotary_factor"] = float64(rotated) / float64(hidden/heads)
	c["sliding_window"] = nil
	if v, ok := f.Value("phi3.attention.sliding_window"); ok && v != json.Number("0") {
		c["sliding_window"] = v
	}
	if _, ok := f.Shape(gguf.ShortFactors); !ok {
		return nil
	}
	// rope.scaling.attn_factor follows from the two contexts.
	return gguf.SetLongRope(c, map[string]any{}, f)
}
