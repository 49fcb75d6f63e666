package certify

import (
	"context"
	"errors"

	"github.com/ingotml/ingot/convert/provenance"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/prompt/calibration"
	"github.com/ingotml/ingot/runtime/calibrate"
	"github.com/ingotml/ingot/runtime/certificate"
	"github.com/opencontainers/go-digest"
)

// calibrationsOf returns the calibrations that the codes of an image depend on, by its provenance records, and the
// texts that they read.
func (c Comparison) calibrationsOf(
	ctx context.Context, e *store.Entry,
) (list []certificate.Calibration, seen []string, err error) {
	records, err := provenance.Read(ctx, c.Images.Store, e.Digest)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range records {
		if r.Statistics == "" {
			continue
		}
		texts, err := c.seen(ctx, e, r.StatisticsText)
		if err != nil {
			return nil, nil, unfit{err}
		}
		list = append(list, certificate.Calibration{Statistics: r.Statistics, Text: r.StatisticsText})
		seen = append(seen, texts...)
	}
	return list, seen, nil
}

// seen returns the texts that a calibration has read, by their digest: the built-in ones, by the chat template or
// without, or c.Texts.
func (c Comparison) seen(ctx context.Context, e *store.Entry, d digest.Digest) (seen []string, err error) {
	builtin, err := calibration.Documents(ctx, c.Images.Store, e, nil)
	if err != nil {
		return nil, err
	}
	plain, err := calibrate.Builtin(ctx, nil)
	if err != nil {
		return nil, err
	}
	known := [][][]calibrate.Document{builtin, plain}
	if len(c.Texts) > 0 {
		known = append(known, calibrate.Files(c.Texts))
	}
	for _, kinds := range known {
		if calibrate.Digest(kinds) != d {
			continue
		}
		for _, kind := range kinds {
			for _, doc := range kind {
				seen = append(seen, doc.Text)
			}
		}
		return seen, nil
	}
	return nil, errors.New("it was calibrated over another text than the built-in one: name its files, in their order, " +
		"with --calibration-text")
}
