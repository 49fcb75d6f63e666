package cmd

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/convert/plan"
)

// printPlan prints the plan: a table of tensors, the dropped tensors with reasons, and totals.
func (a *app) printPlan(p *plan.Plan, asJSON bool) error {
	if asJSON {
		return a.printJSON(p)
	}
	w := newTable(a.out)
	a.printRecognized(p)
	w.row("TENSOR", "SHAPE", "FROM", "TO", "SIZE", "HOW", "RULE")
	for _, t := range p.Tensors {
		w.row(t.Name, shape(t.Shape), sourceType(t), t.Type, size(t.Bytes), strings.Join(t.Transform, ", "), t.Rule)
	}
	if err := w.flush(); err != nil {
		return err
	}
	if len(p.Dropped) > 0 {
		fmt.Fprintln(a.out, "\ndropped:")
		for _, d := range p.Dropped {
			w.row("  "+d.Name, shape(d.Shape), strings.ToLower(string(d.DType)), d.Reason)
		}
		if err := w.flush(); err != nil {
			return err
		}
	}
	return a.printTotals(p)
}

// printRecognized prints the architectures that were recognized, and the evidence.
func (a *app) printRecognized(p *plan.Plan) {
	if len(p.Recognized) == 0 {
		return
	}
	fmt.Fprintln(a.out, "recognized:")
	for _, r := range p.Recognized {
		fmt.Fprintf(a.out, "  %s: %s, %d tensors\n", r.Kind, terminal.Line(r.What), r.Tensors)
		for _, from := range r.From {
			fmt.Fprintf(a.out, "    from %s\n", terminal.Line(from))
		}
	}
	fmt.Fprintln(a.out)
}

// sourceType returns the packed format of a tensor's source, or else its plain type.
func sourceType(t plan.Tensor) string {
	if t.Format != "" {
		return t.Format
	}
	return strings.ToLower(string(t.Source))
}

func (a *app) printTotals(p *plan.Plan) error {
	w := newTable(a.out)
	t := p.Totals
	var files []string
	for _, f := range p.Files {
		files = append(files, f.Name)
	}
	fmt.Fprintln(a.out)
	w.row("tensors", fmt.Sprintf("%d, %s parameters", t.Tensors, count(t.Params)))
	w.row("size", fmt.Sprintf("%s, from %s", size(t.Bytes), size(t.SourceBytes)))
	w.row("bits per weight", fmt.Sprintf("%.2f", t.BitsPerWeight))
	for _, b := range t.Types {
		w.row("  "+b.Type, fmt.Sprintf("%d tensors, %s parameters, %s", b.Tensors, count(b.Params), size(b.Bytes)))
	}
	w.row("files", fmt.Sprintf("%s in %s", size(t.FileBytes), strings.Join(files, ", ")))
	w.row("capabilities", strings.Join(p.Config.Capabilities, ", "))
	for _, n := range p.Warnings {
		w.row("note", n)
	}
	for _, n := range p.Assumed {
		w.row("assumed", n)
	}
	return w.flush()
}

func shape(dims []int64) string {
	parts := make([]string, len(dims))
	for i, d := range dims {
		parts[i] = fmt.Sprint(d)
	}
	return "[" + strings.Join(parts, " ") + "]"
}
