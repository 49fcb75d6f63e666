package arch

// Gemma4Assistant is the configuration of model type "gemma4_assistant": the draft model of a [Gemma4]. Its input is
// the target's embedding of a token concatenated with the target's last hidden state. Its layers attend to the target's
// keys and values. Its output, projected back to the target's width, is the input of its next step.
type Gemma4Assistant struct {
	Text     *Gemma4 // has no keys and values; tied embeddings
	Backbone int     // hidden size of the target
	// Ordered embeddings: the head scores Centroids clusters of the vocabulary, and then the tokens of the TopK best
	// clusters. Centroids 0 = a dense head.
	Centroids, TopK int
}

func init() {
	register(Arch{
		ModelType:     "gemma4_assistant",
		Aliases:       []string{"gemma4_unified_assistant"},
		Architectures: []string{"Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM"},
		PerLayer:      true,
		Parse:         func(config []byte) (Model, error) { return ParseGemma4Assistant(config) },
		TextOnly:      true,
		DraftOnly:     true,
		Docs: Docs{
			Variants: "dense head; head that scores only the tokens of the best clusters",
			Rules:    "those of `gemma4`; the head gets the requested type",
		},
	})
}

// ParseGemma4Assistant parses the config.json of a gemma4_assistant model.
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
	m.Text.Prefix = textPrefix // tensor names do not nest the text model
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

// State implements [Model]. An assistant has none: it reads the target's.
func (m *Gemma4Assistant) State() []LayerState { return nil }

// Facts implements [Model].
func (m *Gemma4Assistant) Facts() Facts {
	return m.Text.facts("gemma4_assistant", m.Text.Rope, m.Table())
}

// Rules implements [Model]: the precision rules of gemma4, adapted to drafts, since an assistant is always a draft.
func (m *Gemma4Assistant) Rules() Rules { return m.Text.Rules().AsDraft() }

// Table implements [Model].
func (m *Gemma4Assistant) Table() Table {
	text := m.Text
	hidden, backbone := int64(text.Hidden), int64(m.Backbone)
	t := Table{ModelType: "gemma4_assistant", Parts: []Part{text.textPart()}}
	t.add(text.Prefix+"embed_tokens.weight", replicated, int64(text.Vocab), hidden)
	t.linear("pre_projection", hidden, 2*backbone, false, replicated)
	text.layers(&t)
	text.end(&t, false)
	t.linear("post_projection", backbone, hidden, false, replicated)
	if m.Centroids > 0 {
		t.linear("masked_embedding.centroids", int64(m.Centroids), hidden, false, replicated)
		t.add("masked_embedding.token_ordering", replicated, int64(text.Vocab)).Types = []string{"I64", "I32"}
	}
	return t
}
