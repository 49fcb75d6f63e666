package arch

// Baichuan is the configuration of model type "baichuan" (Baichuan 7B, Baichuan 2 7B): Llama with queries, keys and
// values in one tensor. Absent keys have the defaults of its publisher's configuration_baichuan.py; sizes are required.
// The models of 13B have ALiBi instead of rope.
type Baichuan struct {
	Dense
	// UnitHead: the rows of the head are divided by their lengths. Baichuan 2 does that, whose class is spelled with a
	// small c.
	UnitHead bool
}

const baichuan2Class = "BaichuanForCausalLM"

func init() {
	register(Arch{
		ModelType:     "baichuan",
		Architectures: []string{"BaiChuanForCausalLM", baichuan2Class},
		Parse:         func(config []byte) (Model, error) { return ParseBaichuan(config) },
		Docs: Docs{
			Variants: "Baichuan 7B and Baichuan 2 7B: fused projections, normalized head (2); not 13B, which has ALiBi",
			Code:     equals("llama"),
		},
	})
}

// ParseBaichuan parses the config.json of a baichuan model. Those of models with ALiBi have no max_position_embeddings.
func ParseBaichuan(config []byte) (*Baichuan, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	if !o.has("max_position_embeddings") {
		return nil, configErrorf("max_position_embeddings: missing, as in the models of 13B, whose attention has " +
			"ALiBi instead of rope: that is not supported")
	}
	m := &Baichuan{Dense: parseDense(top, o, commonDefaults{
		class: baichuan2Class, ctx: 4096, eps: 1e-6, bos: []int32{1}, eos: []int32{2},
	}, ropeOptions{}, silu...)}
	m.UnitHead = m.Architecture == baichuan2Class
	m.AttentionBias, m.OutputBias = false, false
	if m.KVHeads != m.Heads {
		o.fail("num_key_value_heads", "be absent")
	}
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Baichuan) Facts() Facts { return m.facts("baichuan", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Baichuan) Table() Table {
	t := m.preNorm("baichuan", false)
	t.publishedAs(asPublished, []string{"q_proj.", "W_pack.", "k_proj.", "W_pack.", "v_proj.", "W_pack."}, m.joinedQKV())
	return t
}
