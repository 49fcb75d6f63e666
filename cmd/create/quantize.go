package create

import (
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/spf13/cobra"
)

func quantizeCommand(a *cli.App) *cobra.Command {
	var o createOptions
	c := &cobra.Command{
		Use:   "quantize SRC DST [TYPE]",
		Short: "Quantize a model of the store or a checkpoint",
		Long: `Make the image DST from SRC, with weights of TYPE. SRC is a model of the store, a checkpoint folder, a
GGUF file, an image in a registry, or a repository of a hub: hf.co/ORG/REPO[@REVISION][:FILE-OR-TYPE].

This is the same as "create --quantize"; see "ingot create --help" for the types and the rules. The images
share the files, parameters and tensors that do not change.

Without TYPE, --target-size or --max-kl searches a type for each tensor; see "ingot create --help".`,
		Example: `  ingot quantize mymodel mymodel:int4 int4
  ingot quantize mymodel mymodel:small --target-size 4.5bpw
  ingot quantize ./checkpoint mymodel:mxfp8 mxfp8 --dry-run`,
		Args: cli.Between(2, 3),
		RunE: func(c *cobra.Command, args []string) error {
			name, err := manifest.ParseName(args[1])
			if err != nil {
				return err
			}
			if len(args) == 3 {
				o.quantize = args[2]
			}
			var options convert.Options
			if options.Precision, err = o.precision(a); err != nil {
				return err
			}
			if len(args) == 2 && !o.searches(options.Precision) {
				return cli.Usagef("name a TYPE, or what types are searched for: --%s or --%s", targetFlag, maxKLFlag)
			}
			from := &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: args[0]}}}
			return create(c.Context(), a, name, from, options, o)
		},
	}
	o.flags(c)
	return c
}
