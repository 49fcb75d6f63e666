package cmd

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/ingotml/ingot/convert"
)

// printProvenance prints the records of what a model was made from.
func printProvenance(ctx context.Context, o showOutput, m *shown) error {
	list, err := convert.ReadProvenance(ctx, m.store, m.raw.Descriptor.Digest)
	if err != nil {
		return err
	}
	switch {
	case o.json:
		return o.printJSON(append([]convert.ImageProvenance{}, list...))
	case o.template != nil:
		return printEach(o.app, o.template, list...)
	}
	if len(list) == 0 {
		o.note("note: the store has no record of what %s was made from; `ingot discover` tells what its registry has", m.raw.Name)
	}
	for i, p := range list {
		if i > 0 {
			fmt.Fprintln(o.out)
		}
		if err := printRecord(o.out, p); err != nil {
			return err
		}
	}
	return nil
}

func printRecord(out io.Writer, p convert.ImageProvenance) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "image\t%s\nprogram\t%s\n", p.Image, printable(p.Program))
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
			fmt.Fprintf(w, "merged\t%s: %s\n", printable(m.Name), how)
		}
	}
	if q := p.Quantization; q != nil {
		var asked []string
		if q.Type != 0 {
			asked = append(asked, q.Type.String())
		}
		if q.Uniform {
			asked = append(asked, "uniform")
		}
		if q.Draft != 0 {
			asked = append(asked, "draft "+q.Draft.String())
		}
		for _, r := range q.Rules {
			asked = append(asked, r.String())
		}
		fmt.Fprintf(w, "asked for\t%s\n", printable(strings.Join(asked, ", ")))
	}
	for _, d := range p.Dropped {
		fmt.Fprintf(w, "left out\t%s\n", printable(fmt.Sprintf("%s of %s: %s", d.Name, d.File, d.Reason)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nTENSOR\tTYPE\tRULE\tDONE\tSOURCE\tFILE\tSHA256")
	for _, t := range p.Tensors {
		for _, s := range t.Sources {
			file, sum := s.File, s.SHA256
			if s.Blob != "" {
				file, sum = "blob", s.Blob.Encoded()
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", printable(t.Name), printable(t.Type), printable(t.Rule),
				printable(strings.Join(t.Transform, ", ")), printable(s.Name), printable(file), printable(sum))
		}
	}
	return w.Flush()
}

func printOrigin(w io.Writer, what string, o convert.Origin) {
	if o.Image != "" {
		fmt.Fprintf(w, "%s\timage %s\n", what, o.Image)
	}
	for _, f := range o.Files {
		text := fmt.Sprintf("%s, %d bytes", f.Name, f.Size)
		if f.SHA256 != "" {
			text += ", sha256 " + f.SHA256
		}
		fmt.Fprintf(w, "%s\t%s\n", what, printable(text))
	}
}
