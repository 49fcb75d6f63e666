package store

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/convert/provenance"
	"github.com/ingotml/ingot/convert/source"
)

// printProvenance prints the provenance records of a model.
func printProvenance(ctx context.Context, o cli.Output, m *shown) error {
	list, err := provenance.Read(ctx, m.store, m.raw.Descriptor.Digest)
	if err != nil {
		return err
	}
	switch {
	case o.JSON:
		return o.PrintJSON(append([]provenance.ImageRecord{}, list...))
	case o.Template != nil:
		return cli.PrintEach(o.App, o.Template, list...)
	}
	if len(list) == 0 {
		o.Note("note: the store has no provenance record of %s; `ingot discover` lists the artifacts in its registry",
			m.raw.Name)
	}
	for i, p := range list {
		if i > 0 {
			fmt.Fprintln(o.Out)
		}
		if err := printRecord(o.Out, p); err != nil {
			return err
		}
	}
	return nil
}

// notImported lists what the records of a model say of parts of its checkpoint that it lacks. A record that cannot be
// read says nothing here: it is an error of --provenance.
func notImported(ctx context.Context, m *shown) (all []plan.NotImported) {
	list, err := provenance.Read(ctx, m.store, m.raw.Descriptor.Digest)
	if err != nil {
		return nil
	}
	for _, r := range list {
		all = append(all, r.NotImported...)
	}
	return all
}

// mostRules is how many rules of a recipe are printed; --json prints all. A searched one has a rule for each tensor.
const mostRules = 8

func printRecord(out io.Writer, p provenance.ImageRecord) error {
	w := cli.NewTable(out)
	w.Row("image", p.Image.String())
	w.Row("program", p.Program)
	printOrigin(w, "from", p.From)
	if p.Draft != nil {
		printOrigin(w, "draft", *p.Draft)
	}
	for _, a := range p.Adapters {
		printOrigin(w, "adapter", a.Origin)
		for _, m := range a.Merged {
			how := "whole"
			if m.Rank > 0 {
				how = fmt.Sprintf("rank %d, scale %g", m.Rank, m.Scale)
			}
			w.Row("merged", m.Name+": "+how)
		}
	}
	if q := p.Quantization; q != nil {
		var requested []string
		if q.Type != 0 {
			requested = append(requested, q.Type.String())
		}
		if q.Uniform {
			requested = append(requested, "uniform")
		}
		if q.Draft != 0 {
			requested = append(requested, "draft "+q.Draft.String())
		}
		for _, r := range q.Rules[:min(len(q.Rules), mostRules)] {
			requested = append(requested, r.String())
		}
		if more := len(q.Rules) - mostRules; more > 0 {
			requested = append(requested, fmt.Sprintf("and %d more rules", more))
		}
		if q.RuleSet != "" {
			requested = append(requested, string(q.RuleSet))
		}
		w.Row("requested", strings.Join(requested, ", "))
	}
	if p.Statistics != "" {
		w.Row("statistics", p.Statistics.String())
	}
	if p.Equalized != nil {
		w.Row("equalized", fmt.Sprintf("the channels of %d inputs, %s", p.Equalized.Inputs, p.Equalized.Rule))
	}
	for _, n := range p.NotImported {
		w.Row("not imported", n.String())
	}
	for _, d := range p.Dropped {
		w.Row("dropped", fmt.Sprintf("%s of %s: %s", d.Name, d.File, d.Reason))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	w.Row("TENSOR", "TYPE", "RULE", "DONE", "SOURCE", "FILE", "DIGEST")
	for _, t := range p.Tensors {
		for _, s := range t.Sources {
			file := s.File
			if s.Blob != "" {
				file = "blob"
			}
			w.Row(t.Name, t.Type, t.Rule, strings.Join(t.Transform, ", "), s.Name, file, s.Digest())
		}
	}
	return w.Flush()
}

func printOrigin(w cli.Table, what string, o source.Origin) {
	if o.Image != "" {
		w.Row(what, fmt.Sprintf("image %s", o.Image))
	}
	for _, f := range o.Files {
		text := fmt.Sprintf("%s, %d bytes", f.Name, f.Size)
		if f.SHA256 != "" {
			text += ", sha256 " + f.SHA256
		}
		w.Row(what, text)
	}
}
