package convert

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/tokenizer"
)

// draft returns the image's draft, or nil.
func (inv *Inventory) draft(opts PlanOptions) *Inventory {
	if opts.Draft != nil {
		return opts.Draft
	}
	return inv.Draft
}

// planDraft adds the draft's tensors. The draft has a precision of its own.
func (inv *Inventory) planDraft(
	ctx context.Context, p *Plan, draft *Inventory, precision Precision,
) (unused []string, err error) {
	if err := inv.checkDraft(draft); err != nil {
		return nil, err
	}
	c := newChooser(draft.Model.Rules().AsDraft(), precision, precision.Draft)
	c.prefix = draftPrefix
	if err := draft.planTensors(ctx, p, draftPrefix, c); err != nil {
		return nil, err
	}
	return c.unused(), nil
}

// checkDraft verifies at import that the draft is compatible with the target.
func (inv *Inventory) checkDraft(draft *Inventory) error {
	if err := arch.CheckDraft(inv.Model, draft.Model); err != nil {
		return fmt.Errorf("%s as a draft for %s: %w", draft.From, inv.From, err)
	}
	return inv.sameTokenizer(draft)
}

// sameTokenizer verifies that the draft's tokens equal the target's, if the draft has a tokenizer.
func (inv *Inventory) sameTokenizer(draft *Inventory) error {
	mine, ok := inv.file(tokenizerName)
	theirs, okDraft := draft.file(tokenizerName)
	if !ok || !okDraft || bytes.Equal(mine.Data, theirs.Data) {
		return nil
	}
	a, err := tokenizer.Load(mine.Data, nil)
	if err != nil {
		return inv.inFolder(err)
	}
	b, err := tokenizer.Load(theirs.Data, nil)
	if err != nil {
		return draft.inFolder(err)
	}
	for id := range int32(max(a.Size(), b.Size())) {
		x, okX := a.Token(id)
		y, okY := b.Token(id)
		if okX != okY || x != y {
			return fmt.Errorf("%s: %w: its tokenizer differs from that of %s: token %d is %q, not %q",
				draft.From, ErrSource, inv.From, id, clip(y), clip(x))
		}
	}
	return nil
}
