package arch

// Gemma4Assistant is the configuration of model type "gemma4_assistant": the draft model of a [Gemma4]. Its input is the
// target's embedding of a token beside the target's last hidden state, its layers attend the target's keys and values, and
// what it hands to its next step is projected back to the target's width.
type Gemma4Assistant struct {
	Text     *Gemma4 // without keys and values of its own; its embedding is the head
	Backbone int     // hidden size of the target
	// Ordered embeddings: the head scores Centroids clusters of the vocabulary and then the tokens of the TopK best ones.
	// Centroids 0 = a dense head.
	Centroids, TopK int
}

func init() {
	register(Arch{
		ModelType:     "gemma4_assistant",
		Aliases:       []string{"gemma4_unified_assistant"},
		Architectures: []string{"Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseGemma4Assistant(config) },
	})
}

// ParseGemma4Assistant reads the config.json of a gemma4_assistant model.
func ParseGemma4Assistant(config []byte) (*Gemma4Assistant, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	if !o.nested() {
		top.missing("text_config")
	}
	backbone := 1536
	if isUnified(top) {
		backbone = 3840
	}
	m := &Gemma4Assistant{
		Text:     parseGemma4(top, o, "Gemma4AssistantForCausalLM", true),
		Backbone: top.integer("backbone_hidden_size", backbone, 1, maxWidth),
	}
	m.Text.Prefix = textPrefix // its text model is not nested in the tensors' names
	if m.Text.PerLayerHidden > 0 {
		o.fail("hidden_size_per_layer_input", "be 0 in an assistant")
	}
	if m.Text.Experts.Count > 0 {
		o.fail("enable_moe_block", "be false in an assistant")
	}
	if m.Text.Layer[0].Intermediate != m.Text.Intermediate {
		o.fail("use_double_wide_mlp", "be false in an assistant")
	}
	if top.boolean("use_ordered_embeddings", false) {
		m.Centroids = top.integer("num_centroids", 2048, 1, maxVocab)
		if m.Text.Vocab%m.Centroids != 0 {
			top.fail("num_centroids", "divide the vocabulary's size")
		}
		if m.TopK = top.integer("centroid_intermediate_top_k", 32, 1, maxVocab); m.TopK > m.Centroids {
			top.fail("centroid_intermediate_top_k", "be at most num_centroids")
		}
	}
	if err := o.failed(); err != nil {
		return nil, err
	}
	return m, nil
}

// Facts implements [Model].
func (m *Gemma4Assistant) Facts() Facts {
	return m.Text.facts("gemma4_assistant", m.Text.Rope, m.Table())
}

// Rules implements [Model]: those of its family, and of a draft, which is all it can be.
func (m *Gemma4Assistant) Rules() Rules { return m.Text.Rules().AsDraft() }

// Table implements [Model].
func (m *Gemma4Assistant) Table() Table {
	text := m.Text
	hidden, backbone := int64(text.Hidden), int64(m.Backbone)
	t := Table{ModelType: "gemma4_assistant", Parts: []Part{text.textPart()}}
	t.add(text.Prefix+"embed_tokens.weight", int64(text.Vocab), hidden)
	t.linear("pre_projection", hidden, 2*backbone, false)
	text.layers(&t)
	text.end(&t, false)
	t.linear("post_projection", backbone, hidden, false)
	if m.Centroids > 0 {
		t.linear("masked_embedding.centroids", int64(m.Centroids), hidden, false)
		t.add("masked_embedding.token_ordering", int64(text.Vocab)).Types = []string{"I64", "I32"}
	}
	return t
}
