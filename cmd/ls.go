package cmd

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/spf13/cobra"
)

func (a *app) lsCmd() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the models in the store",
		Args:    between(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			store, err := manifest.Open("")
			if err != nil {
				return err
			}
			models, err := store.List(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(lsJSON(models))
			}
			w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tDIGEST\tSIZE\tTYPE\tMODIFIED")
			for _, m := range models {
				fmt.Fprintf(w, "%s\t%.12s\t%s\t%s\t%s\n", m.Name, m.Digest.Encoded(), size(m.Size), m.ModelType, m.Modified.Local().Format(time.DateTime))
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

type lsEntry struct {
	Name     string    `json:"name"`
	Digest   string    `json:"digest"`
	Size     int64     `json:"size"`
	Type     string    `json:"type"`
	Modified time.Time `json:"modified"`
}

func lsJSON(models []manifest.Summary) []lsEntry {
	list := []lsEntry{}
	for _, m := range models {
		list = append(list, lsEntry{m.Name.String(), m.Digest.String(), m.Size, m.ModelType, m.Modified})
	}
	return list
}
