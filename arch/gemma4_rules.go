package arch

// gemma4Rules precede the generic rules. Values and down projections get 8 bits in the layers where errors matter most.
// So do the embedding, which is also the output head, and the per-layer embeddings, which are half of a small model.
var gemma4Rules = []Rule{
	{
		Name: "embedding, which is the head",
		Of:   Quantized, Ends: []string{"embed_tokens.weight"},
		To: []Target{EightBit, Base, Source},
	},
	{
		Name: "per-layer embeddings",
		Of:   Quantized, Ends: []string{"embed_tokens_per_layer.weight"},
		To: []Target{EightBit, Source},
	},
	{
		Name: "values and down projection, some layers",
		Of:   Narrow, Has: []string{".v_proj", "down_proj"}, Layers: MoreBits,
		To: []Target{EightBit, Base, Source},
	},
	{Name: "values, keys, down projection", Of: Narrow, Has: sensitive, To: []Target{Base, Source}},
}

// Rules implements [Model].
func (m *Gemma4) Rules() Rules {
	var first []Rule
	if m.Experts.Count == 8 {
		first = append(first, Rule{
			Name: "values and keys beside 8 experts",
			Of:   Narrow, Has: []string{".v_proj", ".k_proj"},
			To: []Target{EightBit, Base, Source},
		})
	}
	if m.KEqV {
		// The keys of full layers serve as their values, so they are as sensitive as v_proj in other layers.
		r := Rule{
			Name: "keys that are values, some layers",
			Of:   Narrow, Layers: MoreBits,
			To: []Target{EightBit, Base, Source},
		}
		for i, l := range m.Layer {
			if !l.Sliding && !m.Shared(i) {
				r.Has = append(r.Has, m.layer(i)+"self_attn.k_proj")
			}
		}
		if r.Has != nil {
			first = append(first, r)
		}
	}
	return genericRules(m.Layers, append(first, gemma4Rules...)...)
}
