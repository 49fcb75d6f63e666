package store

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/cmd/certify"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/view"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/opencontainers/go-digest"
)

// printCertificates prints the certificates of a model.
func printCertificates(ctx context.Context, o cli.Output, m *shown) error {
	list, err := view.Certificates(ctx, o.App, m.store, m.raw.Descriptor.Digest)
	switch {
	case err != nil:
		return err
	case o.JSON:
		return o.PrintJSON(list)
	case o.Template != nil:
		return cli.PrintEach(o.App, o.Template, list...)
	}
	if len(list) == 0 {
		o.Note("note: the store has no certificate of %s; `ingot verify %s --against BASE --certify` makes one", m.raw.Name,
			m.raw.Name)
	}
	for i, c := range list {
		if i > 0 {
			fmt.Fprintln(o.Out)
		}
		if err := printCertificate(o.App, c); err != nil {
			return err
		}
	}
	return nil
}

func printCertificate(a *cli.App, c certify.Certificate) error {
	w := cli.NewTable(a.Out)
	w.Row("certificate", c.Digest)
	if c.Key != "" {
		w.Row("signed", "key "+c.Key+" (`ingot pull --max-kl --key` verifies it)")
	}
	w.Row("program", c.Program)
	w.Row("base", c.Base.Digest.String())
	text := fmt.Sprintf("%s, %d bytes", c.Text.Digest, c.Text.Bytes)
	if c.Text.Digest == digest.FromString(quality.Text) {
		text += ", the built-in one"
	}
	if c.Text.Chosen {
		text += "; the types were chosen over it"
	}
	w.Row("text", text)
	for _, s := range c.Calibration {
		w.Row("calibration", fmt.Sprintf("%s, over text %s", s.Statistics, s.Text))
	}
	options := fmt.Sprintf("windows of %d tokens", c.Options.Window)
	if c.Options.Float32 {
		options += ", float32"
	}
	if c.Options.KVType != "" {
		options += ", keys and values in " + c.Options.KVType
	}
	w.Row("options", options+"; "+c.Options.Engine)
	if err := w.Flush(); err != nil {
		return err
	}
	return view.PrintFigures(a, c.Figures)
}
