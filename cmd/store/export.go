package store

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/convert/export"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/quantize"
	"github.com/spf13/cobra"
)

func exportCommand(a *cli.App) *cobra.Command {
	var dequantize, kind string
	var asJSON bool
	c := &cobra.Command{
		Use:   "export NAME DIR|FILE.gguf",
		Short: "Write a model as a checkpoint folder or a GGUF file",
		Long: `Write a model of the store as a checkpoint folder. The folder must be empty or not exist yet.
To resume an export that filled the disk, run it again.

Quantized weights are written in mlx-lm's format, codes and scales byte for byte. Unquantized and
dequantized models are written in the format of transformers. The tokenizer and the other files are
copied unchanged.

FILE.gguf is a GGUF file for llama.cpp; docs/gguf.md lists the models. --type sets the type of its matrices:
` + strings.Join(export.GGUFTypes, ", ") + `. With source, codes that a type of GGUF holds exactly
stay the same, and other tensors keep their values.`,
		Example: `  ingot export mymodel:int4 ./mymodel-4bit
  ingot export mymodel:int4 ./mymodel-bf16 --dequantize bf16
  ingot export mymodel:int4 ./mymodel.gguf
  ingot export mymodel ./mymodel-Q8_0.gguf --type Q8_0`,
		Args: cli.Between(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			name, err := manifest.ParseName(args[0])
			if err != nil {
				return err
			}
			if kind != "" && !source.NamesGGUF(args[1]) {
				return cli.Usagef("--type %s: it is for a GGUF file; end the name with .gguf, or use --dequantize", kind)
			}
			var o export.Options
			if dequantize != "" {
				if o.Dequantize, _, err = quantize.ParseType(dequantize); err != nil || !o.Dequantize.IsCast() {
					return cli.Usagef("--dequantize %s: want bf16, f16 or f32", dequantize)
				}
			}
			if dequantize != "" && source.NamesGGUF(args[1]) {
				return cli.Usagef("--dequantize is for folders; use --type with a GGUF file")
			}
			store, err := store.OpenExisting("")
			if err != nil {
				return err
			}
			entry, err := store.Resolve(c.Context(), name)
			if err != nil {
				return err
			}
			bar := a.Progress(asJSON)
			o.Progress = bar.Pack
			var out export.Result
			if source.NamesGGUF(args[1]) {
				out, err = export.GGUF(c.Context(), store, entry, args[1], export.GGUFOptions{Type: kind, Progress: bar.Pack})
			} else {
				out, err = export.Folder(c.Context(), store, entry, args[1], o)
			}
			bar.End()
			if err != nil {
				return err
			}
			for _, n := range out.Notes {
				a.Note("note: %s", n)
			}
			if asJSON {
				return a.PrintJSON(out)
			}
			_, err = fmt.Fprintln(a.Out, out.Dir)
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&dequantize, "dequantize", "", "convert quantized weights to `type`: bf16, f16 or f32")
	f.StringVar(&kind, "type", "", "`type` of a GGUF file's matrices (default source)")
	_ = c.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(export.GGUFTypes, cobra.ShellCompDirectiveNoFileComp))
	f.BoolVar(&asJSON, "json", false, "print the result as JSON, progress as JSON lines")
	return c
}
