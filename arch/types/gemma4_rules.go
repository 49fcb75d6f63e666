package types

import (
	"github.com/ingotml/ingot/arch/precision"
)

// gemma4Rules precede the generic rules. Values and down projections get 8 bits in the layers where errors matter most.
// So do the embedding, which is also the output head, and the per-layer embeddings, which are half of a small model.
var gemma4Rules = []precision.Rule{
	{
		Name: "embedding, which is the head",
		Of:   precision.Quantized, Ends: []string{"embed_tokens.weight"},
		To: []precision.Target{precision.EightBit, precision.Base, precision.Source},
	},
	{
		Name: "per-layer embeddings",
		Of:   precision.Quantized, Ends: []string{"embed_tokens_per_layer.weight"},
		To: []precision.Target{precision.EightBit, precision.Source},
	},
	{
		Name: "values and down projection, some layers",
		Of:   precision.Narrow, Has: []string{".v_proj", "down_proj"}, Layers: precision.MoreBits,
		To: []precision.Target{precision.EightBit, precision.Base, precision.Source},
	},
	{Name: "values, keys, down projection", Of: precision.Narrow, Has: precision.Sensitive,
		To: []precision.Target{precision.Base, precision.Source}},
}

func (m *Gemma4) Rules() precision.Rules {
	var first []precision.Rule
	if m.Experts.Count == 8 {
		first = append(first, precision.Rule{
			Name: "values and keys beside 8 experts",
			Of:   precision.Narrow, Has: []string{".v_proj", ".k_proj"},
			To: []precision.Target{precision.EightBit, precision.Base, precision.Source},
		})
	}
	if m.KEqV {
		// The keys of full layers serve as their values, so they are as sensitive as v_proj in other layers.
		r := precision.Rule{
			Name: "keys that are values, some layers",
			Of:   precision.Narrow, Layers: precision.MoreBits,
			To: []precision.Target{precision.EightBit, precision.Base, precision.Source},
		}
		for i, l := range m.Layer {
			if !l.Sliding && !m.Shared(i) {
				r.Has = append(r.Has, m.LayerName(i)+"self_attn.k_proj")
			}
		}
		if r.Has != nil {
			first = append(first, r)
		}
	}
	return precision.Generic(m.Layers, append(first, gemma4Rules...)...)
}
