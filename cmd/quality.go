package cmd

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/quality"
)

// qualityCheck is what --min-quality asks for. nil asks for nothing.
type qualityCheck struct {
	a      *app
	store  *manifest.Store
	name   manifest.Name
	worst  float64
	text   string
	thread *mlx.Thread
	report *quality.Report
}

// qualityCheck prepares the check before anything is written: what it needs has to be there.
func (a *app) qualityCheck(ctx context.Context, store *manifest.Store, name manifest.Name, o createOptions) (*qualityCheck, error) {
	if o.worst == 0 {
		if o.text != "" {
			return nil, usagef("--quality-text needs --min-quality")
		}
		return nil, nil
	}
	if !(o.worst > 0) {
		return nil, usagef("--min-quality: %v is no divergence; take one such as 0.05, in nats", o.worst)
	}
	text, err := readText(o.text)
	if err != nil {
		return nil, err
	}
	thread, err := a.openEngine(ctx, cpuFlags{})
	if err != nil {
		return nil, err
	}
	return &qualityCheck{a: a, store: store, name: name, worst: o.worst, text: text, thread: thread}, nil
}

func (q *qualityCheck) close() {
	if q != nil {
		q.thread.Close()
	}
}

// accept is what decides, nil where everything is accepted.
func (q *qualityCheck) accept() func(context.Context, manifest.Image, manifest.Image) error {
	if q == nil {
		return nil
	}
	return func(ctx context.Context, img, plain manifest.Image) error {
		rows, err := q.a.judge(ctx, q.thread, q.store, &manifest.Entry{Name: q.name, Image: img}, &manifest.Entry{Name: q.name, Image: plain}, q.text, runtime.Options{})
		if err != nil {
			return err
		}
		r := quality.Summarize(rows)
		if q.report = &r; !(r.MeanKL.Value <= q.worst) {
			return fmt.Errorf("%w: its mean divergence from the weights as they were is %.3g nats over %d tokens, --min-quality asks for at most %.3g; nothing was stored, take a type of more bits",
				convert.ErrRefused, r.MeanKL.Value, r.Tokens, q.worst)
		}
		q.a.note("mean divergence from the weights as they were: %.3g nats over %d tokens (at most %.3g)", r.MeanKL.Value, r.Tokens, q.worst)
		return nil
	}
}

// found is the mean divergence, nil where none was measured.
func (q *qualityCheck) found() *float64 {
	if q == nil || q.report == nil {
		return nil
	}
	return &q.report.MeanKL.Value
}
