package cmd

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/cmd/certify"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/opencontainers/go-digest"
)

// certificates reads the certificates of a model in the store, the last stored first. Those that cannot be used are
// noted.
func (a *app) certificates(ctx context.Context, st *store.Store, image digest.Digest) ([]certify.Certificate, error) {
	list, unusable, err := certify.List(ctx, st, image)
	for _, err := range unusable {
		a.note("warning: %v", err)
	}
	return list, err
}

// printCertificates prints the certificates of a model.
func printCertificates(ctx context.Context, o showOutput, m *shown) error {
	list, err := o.certificates(ctx, m.store, m.raw.Descriptor.Digest)
	switch {
	case err != nil:
		return err
	case o.json:
		return o.printJSON(list)
	case o.template != nil:
		return printEach(o.app, o.template, list...)
	}
	if len(list) == 0 {
		o.note("note: the store has no certificate of %s; `ingot verify %s --against BASE --certify` makes one", m.raw.Name,
			m.raw.Name)
	}
	for i, c := range list {
		if i > 0 {
			fmt.Fprintln(o.out)
		}
		if err := o.printCertificate(c); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printCertificate(c certify.Certificate) error {
	w := newTable(a.out)
	w.row("certificate", c.Digest)
	if c.Key != "" {
		w.row("signed", "key "+c.Key+" (`ingot pull --max-kl --key` verifies it)")
	}
	w.row("program", c.Program)
	w.row("base", c.Base.Digest.String())
	text := fmt.Sprintf("%s, %d bytes", c.Text.Digest, c.Text.Bytes)
	if c.Text.Digest == digest.FromString(quality.Text) {
		text += ", the built-in one"
	}
	if c.Text.Chosen {
		text += "; the types were chosen over it"
	}
	w.row("text", text)
	for _, s := range c.Calibration {
		w.row("calibration", fmt.Sprintf("%s, over text %s", s.Statistics, s.Text))
	}
	options := fmt.Sprintf("windows of %d tokens", c.Options.Window)
	if c.Options.Float32 {
		options += ", float32"
	}
	if c.Options.KVType != "" {
		options += ", keys and values in " + c.Options.KVType
	}
	w.row("options", options+"; "+c.Options.Engine)
	if err := w.flush(); err != nil {
		return err
	}
	return a.printFigures(c.Figures)
}

// certificateSummary describes a certificate in one line.
func certificateSummary(c certify.Certificate) string {
	s := fmt.Sprintf("mean divergence %.3g +- %.2g nats from %s over %d tokens", c.Figures.MeanKL.Value,
		c.Figures.MeanKL.Error, c.Base.Digest.Encoded()[:12], c.Figures.Tokens)
	if c.Key != "" {
		s += ", signed"
	}
	return s
}
