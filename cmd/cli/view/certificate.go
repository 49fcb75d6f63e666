package view

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/cmd/certify"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/opencontainers/go-digest"
)

// CertificateSummary describes a certificate in one line.
func CertificateSummary(c certify.Certificate) string {
	s := fmt.Sprintf("mean divergence %.3g +- %.2g nats from %s over %d tokens", c.Figures.MeanKL.Value,
		c.Figures.MeanKL.Error, c.Base.Digest.Encoded()[:12], c.Figures.Tokens)
	if c.Key != "" {
		s += ", signed"
	}
	return s
}

// Certificates reads the certificates of a model in the store, the last stored first. Those that cannot be used are
// noted.
func Certificates(
	ctx context.Context, a *cli.App, st *store.Store, image digest.Digest,
) ([]certify.Certificate, error) {
	list, unusable, err := certify.List(ctx, st, image)
	for _, err := range unusable {
		a.Note("warning: %v", err)
	}
	return list, err
}

// PrintFigures prints what a comparison measured.
func PrintFigures(a *cli.App, r quality.Report) error {
	text := ""
	for _, line := range []struct {
		name string
		e    quality.Estimate
		unit string
	}{
		{"perplexity", r.Perplexity, ""},
		{"base perplexity", r.BasePerplexity, ""},
		{"ratio", r.PerplexityRatio, ""},
		{"mean divergence", r.MeanKL, " nats"},
	} {
		text += fmt.Sprintf("  %-24s%.6g +- %.2g%s\n", line.name, line.e.Value, line.e.Error, line.unit)
	}
	text += fmt.Sprintf("  %-24s%.3g +- %.2g nats\n", "median divergence", r.MedianKL, r.MedianKLError)
	text += fmt.Sprintf("  %-24s%.3g +- %.2g nats\n", "99th percentile", r.KL99, r.KL99Error)
	text += fmt.Sprintf("  %-24s%.3g nats\n", "largest divergence", r.MaxKL)
	text += fmt.Sprintf("  %-24s%.2f +- %.2f %%\n", "same top token", 100*r.Top1.Value, 100*r.Top1.Error)
	text += fmt.Sprintf("  %-24s%.2f +- %.2f %%\n", "flips", 100*r.Flips.Value, 100*r.Flips.Error)
	_, err := fmt.Fprint(a.Out, text)
	return err
}
