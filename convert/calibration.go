package convert

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/convert/equalize"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/statistics"
	"github.com/ingotml/ingot/manifest/store"
)

// Values of [Options.Calibration] that are not a file.
const (
	NoCalibration   = "none"
	AutoCalibration = "auto"
)

// calibration opens the statistics that opts names, if the model is quantized, and checks that they are of the source's
// weights.
func (p *prepared) calibration(
	ctx context.Context, store func() (*store.Store, error), opts Options, isQuantized bool, to *plan.Options,
) error {
	if opts.Calibration == "" || opts.Calibration == NoCalibration || !isQuantized {
		return nil
	}
	var err error
	if opts.Calibration == AutoCalibration {
		err = p.findStatistics(ctx, store)
	} else {
		p.statistics, err = statistics.Open(opts.Calibration)
	}
	if err != nil {
		return err
	}
	var img manifest.Image
	for _, t := range p.src.Tensors() {
		if l, ok := t.Layer(); ok {
			img.Layers = append(img.Layers, l)
		}
	}
	if p.src.IsImage() && p.statistics.Weights != statistics.Weights(img) {
		return fmt.Errorf("%s: %w: they are of other weights than those of %s; run `ingot calibrate` with this model",
			opts.Calibration, statistics.ErrStatistics, p.src.From)
	}
	to.Calibration, to.Statistics = p.statistics.Set, p.statistics.Digest
	if !opts.Equalize {
		return nil
	}
	scaled, err := equalize.Find(ctx, p.src, p.statistics.Set, opts.Parallel)
	if err != nil || scaled.Layers == 0 {
		return err
	}
	to.Calibration, to.Equalized = scaled.Set, &plan.Equalized{Rule: equalize.Rule, Inputs: scaled.Layers}
	return p.src.Scale(scaled.Scalings)
}

// findStatistics finds the statistics of the source image in the store.
func (p *prepared) findStatistics(ctx context.Context, store func() (*store.Store, error)) error {
	if !p.src.IsImage() {
		return fmt.Errorf("%s is not a model of the store, so it has no statistics: create it without a type, run "+
			"`ingot calibrate`, and quantize that model; or name a file of statistics", p.src.From)
	}
	st, err := store()
	if err != nil {
		return err
	}
	if p.statistics, err = statistics.Find(ctx, st, p.src.Image()); err != nil {
		return err
	}
	if p.statistics == nil {
		return fmt.Errorf("%s has no statistics; run `ingot calibrate %s` first", p.src.From, p.src.From)
	}
	return nil
}
