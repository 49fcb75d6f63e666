package arch

import (
	"errors"
	"fmt"
)

// ErrDraft reports that a model cannot draft for another.
var ErrDraft = errors.New("the draft does not fit the model")

// Drafter is implemented by model types that draft for models of one type only, whose state they read.
type Drafter interface {
	// CheckTarget reports whether the model can draft for target, whose vocabulary is as large.
	CheckTarget(target Model) error
}

// CheckDraft reports whether draft can propose tokens for target, as far as their configurations show: the
// architectures, the vocabulary sizes and what a [Drafter] compares. It does not compare tokenizers.
func CheckDraft(target, draft Model) error {
	a, b := target.Facts(), draft.Facts()
	if _, ok := target.(Drafter); ok {
		return fmt.Errorf("%w: a %s model cannot have a draft, it is one", ErrDraft, a.ModelType)
	}
	if a.Vocab != b.Vocab {
		return fmt.Errorf("%w: it has a vocabulary of %d, the model one of %d", ErrDraft, b.Vocab, a.Vocab)
	}
	if d, ok := draft.(Drafter); ok {
		return d.CheckTarget(target)
	}
	return nil
}
