package cmd

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/spf13/cobra"
)

func (a *app) lsCmd() *cobra.Command {
	var format formatFlags
	var names bool
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the models in the store",
		Long: `List the models in the store.

A Go template sees .Name, .Digest, .Size (bytes), .Type and .Modified (a time) of one model, and the functions
json and size (bytes for people).`,
		Example: `  ingot ls --format '{{.Name}} {{size .Size}}'
  ingot rm $(ingot ls -q)`,
		Args: between(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			template, asJSON, err := format.parse(c)
			if err != nil {
				return err
			}
			if names && (asJSON || template != nil) {
				return usagef("--names excludes --json and --format")
			}
			store, err := manifest.Open("")
			if err != nil {
				return err
			}
			models, err := store.List(c.Context())
			if err != nil {
				return err
			}
			list := lsJSON(models)
			switch {
			case asJSON:
				return a.printJSON(list)
			case template != nil:
				return printEach(a, template, list...)
			case names:
				return a.printNames(list)
			}
			return a.printModels(list)
		},
	}
	format.add(c)
	c.Flags().BoolVarP(&names, "names", "q", false, "print names only")
	return c
}

func (a *app) printNames(list []lsEntry) error {
	for _, m := range list {
		if _, err := fmt.Fprintln(a.out, m.Name); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printModels(list []lsEntry) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tDIGEST\tSIZE\tTYPE\tMODIFIED")
	for _, m := range list {
		fmt.Fprintf(w, "%s\t%.12s\t%s\t%s\t%s\n", m.Name, m.hex, size(m.Size), m.Type, m.Modified.Local().Format(time.DateTime))
	}
	return w.Flush()
}

type lsEntry struct {
	Name     string    `json:"name"`
	Digest   string    `json:"digest"`
	Size     int64     `json:"size"`
	Type     string    `json:"type"`
	Modified time.Time `json:"modified"`
	hex      string    // of the digest
}

func lsJSON(models []manifest.Summary) []lsEntry {
	list := []lsEntry{}
	for _, m := range models {
		list = append(list, lsEntry{m.Name.String(), m.Digest.String(), m.Size, m.ModelType, m.Modified, m.Digest.Encoded()})
	}
	return list
}
