package create

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/convert/plan"
)

// printPlan prints the plan: a table of tensors, the dropped tensors with reasons, and totals.
func printPlan(a *cli.App, p *plan.Plan, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(p)
	}
	w := cli.NewTable(a.Out)
	printRecognized(a, p)
	w.Row("TENSOR", "SHAPE", "FROM", "TO", "SIZE", "HOW", "RULE")
	for _, t := range p.Tensors {
		w.Row(t.Name, cli.Shape(t.Shape), sourceType(t), t.Type, cli.Size(t.Bytes), strings.Join(t.Transform, ", "), t.Rule)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(p.Dropped) > 0 {
		fmt.Fprintln(a.Out, "\ndropped:")
		for _, d := range p.Dropped {
			w.Row("  "+d.Name, cli.Shape(d.Shape), strings.ToLower(string(d.DType)), d.Reason)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return printTotals(a, p)
}

// printRecognized prints the architectures that were recognized, and the evidence.
func printRecognized(a *cli.App, p *plan.Plan) {
	if len(p.Recognized) == 0 {
		return
	}
	fmt.Fprintln(a.Out, "recognized:")
	for _, r := range p.Recognized {
		fmt.Fprintf(a.Out, "  %s: %s, %d tensors\n", r.Kind, terminal.Line(r.What), r.Tensors)
		for _, from := range r.From {
			fmt.Fprintf(a.Out, "    from %s\n", terminal.Line(from))
		}
	}
	fmt.Fprintln(a.Out)
}

// sourceType returns the packed format of a tensor's source, or else its plain type.
func sourceType(t plan.Tensor) string {
	if t.Format != "" {
		return t.Format
	}
	return strings.ToLower(string(t.Source))
}

func printTotals(a *cli.App, p *plan.Plan) error {
	w := cli.NewTable(a.Out)
	t := p.Totals
	var files []string
	for _, f := range p.Files {
		files = append(files, f.Name)
	}
	fmt.Fprintln(a.Out)
	w.Row("tensors", fmt.Sprintf("%d, %s parameters", t.Tensors, cli.Count(t.Params)))
	w.Row("size", fmt.Sprintf("%s, from %s", cli.Size(t.Bytes), cli.Size(t.SourceBytes)))
	w.Row("bits per weight", fmt.Sprintf("%.2f", t.BitsPerWeight))
	for _, b := range t.Types {
		w.Row("  "+b.Type, fmt.Sprintf("%d tensors, %s parameters, %s", b.Tensors, cli.Count(b.Params), cli.Size(b.Bytes)))
	}
	w.Row("files", fmt.Sprintf("%s in %s", cli.Size(t.FileBytes), strings.Join(files, ", ")))
	w.Row("capabilities", strings.Join(p.Config.Capabilities, ", "))
	for _, n := range p.Warnings {
		w.Row("note", n)
	}
	for _, n := range p.Assumed {
		w.Row("assumed", n)
	}
	return w.Flush()
}
