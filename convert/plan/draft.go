package plan

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/convert/internal/encode"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/tokenizer"
)

// planDraft adds the draft's tensors. The draft has a precision of its own.
func (p *planner) planDraft(ctx context.Context, draft *source.Source) (unused []string, err error) {
	if err := checkDraft(p.src, draft); err != nil {
		return nil, err
	}
	precision := p.opts.Precision
	c := newChooser(arch.RulesOf(draft.Model, precision.RuleSet).AsDraft(), precision, precision.Draft)
	c.prefix = blob.DraftPrefix
	of := planner{src: draft, plan: p.plan}
	if err := of.planTensors(ctx, blob.DraftPrefix, c); err != nil {
		return nil, err
	}
	return c.unused(), nil
}

// checkDraft verifies at import that the draft is compatible with the target.
func checkDraft(src, draft *source.Source) error {
	if err := arch.CheckDraft(src.Model, draft.Model); err != nil {
		return fmt.Errorf("%s as a draft for %s: %w", draft.From, src.From, err)
	}
	if !arch.HasHead(src.Model) || !arch.HasHead(draft.Model) {
		return fmt.Errorf("%s as a draft for %s: %w: one of them has no output head and generates no tokens",
			draft.From, src.From, source.ErrSource)
	}
	return sameTokenizer(src, draft)
}

// sameTokenizer verifies that the draft's tokens equal the target's, if the draft has a tokenizer.
func sameTokenizer(src, draft *source.Source) error {
	mine, ok := src.File(tokenizerName)
	theirs, okDraft := draft.File(tokenizerName)
	if !ok || !okDraft || bytes.Equal(mine.Data, theirs.Data) {
		return nil
	}
	a, err := tokenizer.Load(mine.Data, nil)
	if err != nil {
		return src.Located(err)
	}
	b, err := tokenizer.Load(theirs.Data, nil)
	if err != nil {
		return draft.Located(err)
	}
	for id := range int32(max(a.Size(), b.Size())) {
		x, okX := a.Token(id)
		y, okY := b.Token(id)
		if okX != okY || x != y {
			return fmt.Errorf("%s: %w: its tokenizer differs from that of %s: token %d is %q, not %q",
				draft.From, source.ErrSource, src.From, id, encode.Clip(y), encode.Clip(x))
		}
	}
	return nil
}
