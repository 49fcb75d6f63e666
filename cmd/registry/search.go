package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/ingotml/ingot/safetensors"
	"github.com/spf13/cobra"
)

func searchCommand(a *cli.App) *cobra.Command {
	var limit int
	var flags transfer.HubFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "search TEXT",
		Short: "Find models of the hub that ingot can run",
		Long: `List models of the Hugging Face hub whose names contain TEXT and whose architecture ingot can run, the most
downloaded first, with the size of their weights as published and at some quantizations.

Sizes are estimates: each architecture keeps some tensors at a higher precision, which "ingot create
--dry-run" shows. A gated model needs a token of an account that has accepted its licence: HF_TOKEN.`,
		Example: `  ingot search qwen3
  ingot create mymodel hf.co/Qwen/Qwen3-0.6B -q int4`,
		Args: cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 1 || limit > maxFound {
				return cli.Usagef("--limit %d is not between 1 and %d", limit, maxFound)
			}
			return search(c.Context(), a, args[0], limit, asJSON, flags)
		},
	}
	c.Flags().IntVar(&limit, "limit", 20, "`number` of models to list")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	flags.Wait.AddWait(c.Flags())
	return c
}

const (
	maxFound   = 100
	hubResults = 200 // of the hub, which does not know what ingot can run
)

// searchTypes are the quantizations that a search shows.
var searchTypes = []string{"int8", "int6", "int4", "mxfp4"}

type searchJSON struct {
	Models []foundJSON `json:"models"`
}

type foundJSON struct {
	Name       string           `json:"name"`
	ModelType  string           `json:"model_type"`
	Parameters int64            `json:"parameters,omitempty"`
	Type       string           `json:"type,omitempty"` // of most weights, as published
	Quantized  bool             `json:"quantized,omitempty"`
	Gated      bool             `json:"gated,omitempty"`
	Downloads  int64            `json:"downloads"`
	Sizes      map[string]int64 `json:"sizes,omitempty"` // bytes of the weights by type; "source" as published
}

func search(ctx context.Context, a *cli.App, text string, limit int, asJSON bool, flags transfer.HubFlags) error {
	client, err := transfer.HubClient(a, flags, transfer.MinAhead)
	if err != nil {
		return err
	}
	list, err := client.Search(ctx, text, hubResults)
	if err != nil {
		return err
	}
	out := searchJSON{Models: []foundJSON{}}
	for _, m := range list {
		if runs(m.ModelType) && len(out.Models) < limit {
			out.Models = append(out.Models, describeFound(m))
		}
	}
	if asJSON {
		return a.PrintJSON(out)
	}
	if len(out.Models) == 0 {
		return fmt.Errorf("the hub lists no model named like %q that this version can run; see docs/models.md", text)
	}
	t := cli.NewTable(a.Out)
	header := []string{"NAME", "MODEL", "SOURCE", "TYPE"}
	for _, name := range searchTypes {
		header = append(header, strings.ToUpper(name))
	}
	t.Row(append(header, "NOTE")...)
	for _, m := range out.Models {
		row := []string{m.Name, m.ModelType, sizeOf(m, "source"), m.Type}
		for _, name := range searchTypes {
			row = append(row, sizeOf(m, name))
		}
		t.Row(append(row, note(m))...)
	}
	return t.Flush()
}

func sizeOf(m foundJSON, name string) string {
	if n, ok := m.Sizes[name]; ok {
		return cli.Size(n)
	}
	return "-"
}

func note(m foundJSON) string {
	var notes []string
	if m.Gated {
		notes = append(notes, "gated")
	}
	if m.Quantized {
		notes = append(notes, "quantized")
	}
	return strings.Join(notes, ", ")
}

// runs reports whether this version can run models of a model_type.
func runs(modelType string) bool {
	return modelType != "" && slices.ContainsFunc(arch.All(), func(a arch.Arch) bool {
		return !a.DraftOnly && (a.ModelType == modelType || slices.Contains(a.Aliases, modelType))
	})
}

func describeFound(m hub.Found) foundJSON {
	out := foundJSON{
		Name: m.Name.String(), ModelType: m.ModelType, Quantized: m.Quantized, Gated: m.Gated, Downloads: m.Downloads,
	}
	var source, most int64
	for name, n := range m.Parameters {
		bits := int64(safetensors.DType(name).Bits())
		if bits == 0 || n < 0 {
			return out // a type that nobody knows: there is nothing to compute with
		}
		out.Parameters += n
		source += n / 8 * bits
		if n > most {
			most, out.Type = n, strings.ToLower(name)
		}
	}
	if out.Parameters == 0 {
		return out
	}
	out.Sizes = map[string]int64{"source": source}
	if m.Quantized { // the elements are packed, so their number is not that of the weights
		return out
	}
	for _, name := range searchTypes {
		if t, _, err := quantize.ParseType(name); err == nil {
			out.Sizes[name] = int64(float64(out.Parameters) * t.BitsPerWeight(quantize.BF16) / 8)
		}
	}
	return out
}
