package convert

import (
	"context"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize/recipe"
)

// Sizes are the images that a Modelfile would make with several precisions.
type Sizes struct {
	Model arch.Model
	Plans []*plan.Plan // parallel to the precisions; nil where Err has an error
	Err   []error
}

// Plan plans the images of a Modelfile with several precisions. It opens the source once and reads no weights.
func Plan(
	ctx context.Context, store func() (*store.Store, error), file *modelfile.File, opts Options,
	precisions []recipe.Precision,
) (*Sizes, error) {
	opts.Precision, opts.Calibration = recipe.Precision{}, ""
	p, err := prepareWith(ctx, store, file, opts, true)
	if err != nil {
		return nil, err
	}
	defer p.close()
	s := &Sizes{Model: p.src.Model}
	for _, q := range precisions {
		o := p.options
		o.Precision = q
		made, err := plan.New(ctx, p.src, o)
		s.Plans, s.Err = append(s.Plans, made), append(s.Err, err)
	}
	return s, nil
}
