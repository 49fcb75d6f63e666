package cmd

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/ingotml/ingot/convert"
)

// printPlan prints what would be made: a table of tensors, totals, and what is left out and why.
func (a *app) printPlan(p *convert.Plan, asJSON bool) error {
	if asJSON {
		return a.printJSON(p)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	a.printRecognized(p)
	fmt.Fprintln(w, "TENSOR\tSHAPE\tFROM\tTO\tSIZE\tHOW\tRULE")
	for _, t := range p.Tensors {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.Name, shape(t.Shape), sourceType(t), t.Type, size(t.Bytes),
			strings.Join(t.Transform, ", "), t.Rule)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(p.Dropped) > 0 {
		fmt.Fprintln(a.out, "\nleft out:")
		for _, d := range p.Dropped {
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", d.Name, shape(d.Shape), strings.ToLower(string(d.DType)), d.Reason)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return a.printTotals(p)
}

// printRecognized prints what was found by reading, and what showed it.
func (a *app) printRecognized(p *convert.Plan) {
	if len(p.Recognized) == 0 {
		return
	}
	fmt.Fprintln(a.out, "recognized:")
	for _, r := range p.Recognized {
		fmt.Fprintf(a.out, "  %s: %s, %d tensors\n", r.Kind, r.What, r.Tensors)
		for _, from := range r.From {
			fmt.Fprintf(a.out, "    from %s\n", from)
		}
	}
	fmt.Fprintln(a.out)
}

// sourceType is how a tensor's source is packed, or its plain type.
func sourceType(t convert.Tensor) string {
	if t.Format != "" {
		return t.Format
	}
	return strings.ToLower(string(t.Source))
}

func (a *app) printTotals(p *convert.Plan) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	t := p.Totals
	var files []string
	for _, f := range p.Files {
		files = append(files, f.Name)
	}
	fmt.Fprintf(w, "\ntensors\t%d, %s parameters\n", t.Tensors, count(t.Params))
	fmt.Fprintf(w, "size\t%s, from %s\n", size(t.Bytes), size(t.SourceBytes))
	fmt.Fprintf(w, "bits per weight\t%.2f\n", t.BitsPerWeight)
	for _, b := range t.Types {
		fmt.Fprintf(w, "  %s\t%d tensors, %s parameters, %s\n", b.Type, b.Tensors, count(b.Params), size(b.Bytes))
	}
	fmt.Fprintf(w, "files\t%s in %s\n", size(t.FileBytes), strings.Join(files, ", "))
	fmt.Fprintf(w, "capabilities\t%s\n", strings.Join(p.Config.Capabilities, ", "))
	for _, n := range p.Warnings {
		fmt.Fprintf(w, "note\t%s\n", n)
	}
	return w.Flush()
}

func shape(dims []int64) string {
	parts := make([]string, len(dims))
	for i, d := range dims {
		parts[i] = fmt.Sprint(d)
	}
	return "[" + strings.Join(parts, " ") + "]"
}
