package arch

import (
	"errors"
	"fmt"
)

// ErrDraft reports that a model cannot draft for another.
var ErrDraft = errors.New("the draft does not fit the model")

// CheckDraft reports whether draft can propose tokens for target, as far as their configurations show: the
// architectures, the vocabulary sizes and, for an assistant, its width and the keys that it reads. It does not compare
// tokenizers.
func CheckDraft(target, draft Model) error {
	a, b := target.Facts(), draft.Facts()
	if _, ok := target.(*Gemma4Assistant); ok {
		return fmt.Errorf("%w: a %s model cannot have a draft, it is one", ErrDraft, a.ModelType)
	}
	if a.Vocab != b.Vocab {
		return fmt.Errorf("%w: it has a vocabulary of %d, the model one of %d", ErrDraft, b.Vocab, a.Vocab)
	}
	assistant, ok := draft.(*Gemma4Assistant)
	if !ok {
		return nil
	}
	backbone, ok := target.(*Gemma4)
	if !ok {
		return fmt.Errorf("%w: a %s model drafts for gemma4, not for %s", ErrDraft, b.ModelType, a.ModelType)
	}
	return assistant.check(backbone)
}

// check compares an assistant with the target whose hidden states, keys and values it reads.
func (m *Gemma4Assistant) check(target *Gemma4) error {
	if m.Backbone != target.Hidden {
		return fmt.Errorf("%w: backbone_hidden_size = %d, the model's hidden_size is %d", ErrDraft, m.Backbone, target.Hidden)
	}
	for i, l := range m.Text.Layer {
		kind := fullAttention
		if l.Sliding {
			kind = slidingAttention
		}
		j := target.LastKV(l.Sliding)
		if j < 0 {
			return fmt.Errorf("%w: its layer %d reads keys of %s, of which the model has no layer", ErrDraft, i, kind)
		}
		k := target.Layer[j]
		if l.HeadDim != k.HeadDim {
			return fmt.Errorf("%w: heads of %s are %d wide, the model's %d", ErrDraft, kind, l.HeadDim, k.HeadDim)
		}
		if m.Text.Heads%k.KVHeads != 0 {
			return fmt.Errorf("%w: its %d query heads are not a multiple of the model's %d key heads in layers of %s",
				ErrDraft, m.Text.Heads, k.KVHeads, kind)
		}
		if l.Sliding && m.Text.Window != target.Window {
			return fmt.Errorf("%w: its window is %d, the model's %d", ErrDraft, m.Text.Window, target.Window)
		}
		if l.Sliding && target.Window < 2 {
			return fmt.Errorf("%w: a sliding window of 1 leaves none of the model's keys for it to read", ErrDraft)
		}
	}
	return nil
}

// LastKV returns the last sliding or full layer that has its own keys and values, or -1 for none.
func (m *Gemma4) LastKV(sliding bool) int {
	last := -1
	for i, l := range m.Layer {
		if l.Sliding == sliding && l.KV == i {
			last = i
		}
	}
	return last
}
