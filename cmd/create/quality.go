package create

import (
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/cmd/certify"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/cmd/cli/input"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/cli/signing"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/measure"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/opencontainers/go-digest"
)

// maxKLFlag is the flag of the quality check.
const maxKLFlag = "max-kl"

// qualityCheck implements --max-kl. A nil check accepts everything.
type qualityCheck struct {
	a      *cli.App
	store  *store.Store
	name   manifest.Name
	maxKL  float64
	text   string
	thread *mlx.Thread
	report *quality.Report

	key              *sigstore.PrivateKey // signs the certificate; nil does not
	calibrationTexts []string             // texts of calibrations that did not read the built-in one
	searched         []string             // texts that types are searched over
	chosen           bool                 // text is one of them
	certificate      digest.Digest        // of the certificate that was attached
}

func (q *qualityCheck) images() measure.Images {
	return models.Images(q.store, q.thread, runtime.Options{})
}

// newQualityCheck prepares the check. It fails before anything is written if the text or the engine is missing.
func newQualityCheck(
	ctx context.Context, a *cli.App, store *store.Store, name manifest.Name, o createOptions,
) (*qualityCheck, error) {
	if o.maxKL == 0 {
		if o.qualityText != "" {
			return nil, cli.Usagef("--quality-text requires --max-kl")
		}
		if o.key != "" || len(o.calibrationTexts) > 0 {
			return nil, cli.Usagef("--key and --calibration-text are about the certificate of --max-kl")
		}
		return nil, nil
	}
	if !(o.maxKL > 0) {
		return nil, cli.Usagef("--max-kl %v must be positive; use a divergence in nats, such as 0.05", o.maxKL)
	}
	text, err := input.Text(o.qualityText)
	if err != nil {
		return nil, err
	}
	q := &qualityCheck{a: a, store: store, name: name, maxKL: o.maxKL, text: text}
	if q.calibrationTexts, err = input.Texts(o.calibrationTexts); err != nil {
		return nil, err
	}
	if o.key != "" {
		if q.key, err = signing.PrivateKey(ctx, a, o.key); err != nil {
			return nil, err
		}
	}
	if q.thread, err = engines.Open(ctx, a, engines.CPUFlags{}); err != nil {
		return nil, err
	}
	return q, nil
}

func (q *qualityCheck) close() {
	if q != nil {
		q.thread.Close()
	}
}

// accept returns the function that accepts or rejects an image, or nil without a check.
func (q *qualityCheck) accept() func(context.Context, convert.Candidate) error {
	if q == nil {
		return nil
	}
	return func(ctx context.Context, c convert.Candidate) error {
		result := &store.Entry{Name: q.name, Image: c.Image}
		source := &store.Entry{Name: q.name, Image: c.Plain}
		bar := cli.TokenProgress{Progress: q.a.Progress(false), Doing: "comparing"}
		rows, err := q.images().Compare(ctx, result, source, q.text, bar.Set)
		bar.End()
		if err != nil {
			return err
		}
		r := quality.Summarize(rows)
		if q.report = &r; !(r.MeanKL.Value <= q.maxKL) {
			return fmt.Errorf("%w: its mean KL divergence from the source is %.5g nats over %d tokens, "+
				"which exceeds --max-kl %.5g; nothing was stored: use a type with more bits",
				convert.ErrRefused, r.MeanKL.Value, r.Tokens, q.maxKL)
		}
		q.a.Note("mean KL divergence from the source: %.3g nats over %d tokens (limit %.3g)",
			r.MeanKL.Value, r.Tokens, q.maxKL)
		return q.certify(ctx, c)
	}
}

// certify attaches a certificate to an image that is about to be stored. Without one, a note says why, or an error if
// it should be signed.
func (q *qualityCheck) certify(ctx context.Context, c convert.Candidate) error {
	made := certify.Comparison{
		Program: "ingot " + cli.Version, Images: q.images(), Text: q.text, Chosen: q.chosen, Report: *q.report,
		Texts: q.calibrationTexts, Searched: q.searched, Key: q.key,
	}
	a, err := made.Candidate(ctx, q.name, c)
	switch {
	case errors.Is(err, certify.ErrUnfit) && q.key != nil:
		return fmt.Errorf("no certificate: %w", err)
	case errors.Is(err, certify.ErrUnfit):
		q.a.Note("note: no certificate: %v", err)
	case err != nil:
		return err
	case a != nil:
		q.certificate = a.Descriptor.Digest
	}
	return nil
}

// certified returns the digest of the certificate, or "".
func (q *qualityCheck) certified() string {
	if q == nil {
		return ""
	}
	return q.certificate.String()
}

// found returns the mean KL divergence, or nil if none was measured.
func (q *qualityCheck) found() *float64 {
	if q == nil || q.report == nil {
		return nil
	}
	return &q.report.MeanKL.Value
}
