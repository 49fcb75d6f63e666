package arch

// Glm4Moe is the configuration of model type "glm4_moe" (GLM-4.5 to 4.7): a pre-norm decoder whose rope rotates a part
// of each head, with experts of a sigmoid router, shared experts and dense first layers. Absent keys have the defaults
// of transformers 5.23; sizes are required.
type Glm4Moe struct {
	Dense
	Mixture   Mixture
	HeadNorms bool // norms of queries and keys per head
	// NextLayers is the number of multi-token prediction heads, numbered after the layers.
	NextLayers int
}

func init() {
	register(Arch{
		ModelType:     "glm4_moe",
		Architectures: []string{"Glm4MoeForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseGlm4Moe(config) },
		GGUF:          []GGUF{ggufGlm4Moe},
		Docs: Docs{
			Variants: "groups of experts, shared experts, dense first layers, norms of queries and keys, biases",
			Rules:    "generic, also for experts",
			Draft:    nextDraftDoc,
		},
	})
}

// ParseGlm4Moe parses the config.json of a glm4_moe model.
func ParseGlm4Moe(config []byte) (*Glm4Moe, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &Glm4Moe{
		Dense: parseDecoder(top, o, commonDefaults{class: "Glm4MoeForCausalLM", kv: 8, ctx: 1 << 17, eps: 1e-5},
			ropeOptions{partial: 0.5}),
		HeadNorms:  o.boolean("use_qk_norm", false),
		NextLayers: o.integerOf(1, 0, 16, "num_nextn_predict_layers", "num_mtp_layers"),
	}
	m.OutputBias = false
	m.Intermediate = o.integer("intermediate_size", 10944, 1, maxWidth)
	m.Mixture.parseGrouped(o, m.Common, mixtureDefaults{count: 128, perToken: 8, width: 1408, sumToOne: true, shared: 1})
	m.Mixture.parseDense(o, 1)
	return parsed(m, o)
}

// Facts implements [Model].
func (m *Glm4Moe) Facts() Facts { return m.facts("glm4_moe", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Glm4Moe) Table() Table {
	norms := m.headNorms
	if !m.HeadNorms {
		norms = nil
	}
	t := m.decodes("glm4_moe", m.Mixture, norms)
	if !m.HasNext() {
		m.dropNext(&t, m.NextLayers)
		return t
	}
	m.addNext(&t, func(t *Table, layer string) { m.decoderLayer(t, layer, m.Mixture, true, norms) })
	return t
}

// HasNext reports whether the tensors of a multi-token prediction head are imported. No published checkpoint has more
// than one.
func (m *Glm4Moe) HasNext() bool { return m.NextLayers == 1 }

// Next returns the name prefix of the multi-token prediction head.
func (m *Glm4Moe) Next() string { return m.nextLayer() }
