package types

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

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
	arch.Register(arch.Arch{
		ModelType:     "gemma4_assistant",
		Aliases:       []string{"gemma4_unified_assistant"},
		Architectures: []string{"Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM"},
		PerLayer:      true,
		DraftOnly:     true,
		Wide:          true,
		Docs: arch.Docs{
			Variants: "dense head; head that scores only the tokens of the best clusters",
			Rules:    "those of `gemma4`; the head gets the requested type",
		},
	}, ParseGemma4Assistant)
}

// ParseGemma4Assistant parses the config.json of a gemma4_assistant model.
func ParseGemma4Assistant(data []byte) (*Gemma4Assistant, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	if !o.Nested() {
		top.Missing("text_config")
	}
	backbone := 1536
	if isUnified(top) {
		backbone = 3840
	}
	m := &Gemma4Assistant{
		Text:     parseGemma4(top, o, "Gemma4AssistantForCausalLM", true),
		Backbone: top.Integer("backbone_hidden_size", backbone, 1, config.MaxWidth),
	}
	m.Text.Prefix = table.TextPrefix // tensor names do not nest the text model
	if m.Text.PerLayerHidden > 0 {
		o.Fail("hidden_size_per_layer_input", "be 0 in an assistant")
	}
	if m.Text.Experts.Count > 0 {
		o.Fail("enable_moe_block", "be false in an assistant")
	}
	if m.Text.Layer[0].Intermediate != m.Text.Intermediate {
		o.Fail("use_double_wide_mlp", "be false in an assistant")
	}
	if top.Bool("use_ordered_embeddings", false) {
		m.Centroids = top.Integer("num_centroids", 2048, 1, config.MaxVocab)
		if m.Text.Vocab%m.Centroids != 0 {
			top.Fail("num_centroids", "divide the vocabulary's size")
		}
		if m.TopK = top.Integer("centroid_intermediate_top_k", 32, 1, config.MaxVocab); m.TopK > m.Centroids {
			top.Fail("centroid_intermediate_top_k", "be at most num_centroids")
		}
	}
	if err := o.Failed(); err != nil {
		return nil, err
	}
	return m, nil
}

// State implements [arch.Model]. An assistant has none: it reads the target's.
func (m *Gemma4Assistant) State() []config.LayerState { return nil }

func (m *Gemma4Assistant) Facts() config.Facts {
	return m.Text.FactsAs("gemma4_assistant", m.Text.Rope, m.Table())
}

// Rules implements [arch.Model]: the precision rules of gemma4, adapted to drafts, since an assistant is always a
// draft.
func (m *Gemma4Assistant) Rules() precision.Rules { return m.Text.Rules().AsDraft() }

func (m *Gemma4Assistant) Table() table.Table {
	text := m.Text
	hidden, backbone := int64(text.Hidden), int64(m.Backbone)
	t := table.Table{ModelType: "gemma4_assistant", Parts: []table.Part{text.TextPart()}}
	t.Add(text.Prefix+"embed_tokens.weight", table.Whole, int64(text.Vocab), hidden)
	t.Linear("pre_projection", hidden, 2*backbone, false, table.Whole)
	text.layers(&t)
	text.AddEnd(&t, false)
	t.Linear("post_projection", backbone, hidden, false, table.Whole)
	if m.Centroids > 0 {
		t.Linear("masked_embedding.centroids", int64(m.Centroids), hidden, false, table.Whole)
		t.Add("masked_embedding.token_ordering", table.Whole, int64(text.Vocab)).Types = []string{"I64", "I32"}
	}
	return t
}

// CheckTarget compares an assistant with the target whose hidden states, keys and values it reads.
func (m *Gemma4Assistant) CheckTarget(of arch.Model) error {
	target, ok := of.(*Gemma4)
	if !ok {
		return fmt.Errorf("%w: a %s model drafts for gemma4, not for %s", arch.ErrDraft, m.Facts().ModelType,
			of.Facts().ModelType)
	}
	if m.Backbone != target.Hidden {
		return fmt.Errorf("%w: backbone_hidden_size = %d, the model's hidden_size is %d", arch.ErrDraft, m.Backbone,
			target.Hidden)
	}
	for i, l := range m.Text.Layer {
		kind := config.FullAttention
		if l.Sliding {
			kind = config.SlidingAttention
		}
		j := target.LastKV(l.Sliding)
		if j < 0 {
			return fmt.Errorf("%w: its layer %d reads keys of %s, of which the model has no layer", arch.ErrDraft, i, kind)
		}
		k := target.Layer[j]
		if l.HeadDim != k.HeadDim {
			return fmt.Errorf("%w: heads of %s are %d wide, the model's %d", arch.ErrDraft, kind, l.HeadDim, k.HeadDim)
		}
		if m.Text.Heads%k.KVHeads != 0 {
			return fmt.Errorf("%w: its %d query heads are not a multiple of the model's %d key heads in layers of %s",
				arch.ErrDraft, m.Text.Heads, k.KVHeads, kind)
		}
		if l.Sliding && m.Text.Window != target.Window {
			return fmt.Errorf("%w: its window is %d, the model's %d", arch.ErrDraft, m.Text.Window, target.Window)
		}
		if l.Sliding && target.Window < 2 {
			return fmt.Errorf("%w: a sliding window of 1 leaves none of the model's keys for it to read", arch.ErrDraft)
		}
	}
	return nil
}
