package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/spf13/cobra"
)

func (a *app) createCmd() *cobra.Command {
	var file string
	var asJSON bool
	c := &cobra.Command{
		Use:   "create NAME [DIR]",
		Short: "Make a model image from a checkpoint folder",
		Long: `Make a model image from a checkpoint folder and put it into the store.

With DIR, the folder is imported as it is; otherwise a Modelfile says what to do.`,
		Example: `  ingot create mymodel ./checkpoint
  ingot create mymodel -f ./Modelfile`,
		Args: between(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			name, err := manifest.ParseName(args[0])
			if err != nil {
				return err
			}
			if len(args) == 2 && c.Flags().Changed("file") {
				return usagef("a folder and --file exclude each other")
			}
			var from *modelfile.File
			var options convert.Options
			if len(args) == 2 {
				from = &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: args[1]}}}
			} else if from, err = readModelfile(file, &options); err != nil {
				return err
			}
			store, err := manifest.Open("")
			if err != nil {
				return err
			}
			bar := a.progress("packing")
			options.Progress = func(e convert.Event) { bar.set(e.Bytes, e.TotalBytes) }
			result, err := convert.Create(c.Context(), store, name, from, options)
			bar.end()
			if err != nil {
				return err
			}
			for _, w := range result.Warnings {
				a.note("note: %s", w)
			}
			if asJSON {
				return a.printJSON(createJSON{result.Name.String(), result.Digest.String(), result.Tensors, result.Bytes, result.Reused})
			}
			_, err = fmt.Fprintf(a.out, "%s@%s\n", result.Name, result.Digest)
			return err
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "Modelfile", "the Modelfile")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

type createJSON struct {
	Name    string `json:"name"`
	Digest  string `json:"digest"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"`
	Reused  int64  `json:"reused_bytes"`
}

func readModelfile(path string, o *convert.Options) (*modelfile.File, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s; name a checkpoint folder, or a Modelfile with -f", path)
	}
	if err != nil {
		return nil, err
	}
	o.Dir = filepath.Dir(path)
	return modelfile.Parse(path, text)
}
