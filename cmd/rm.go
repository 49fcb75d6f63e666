package cmd

import (
	"errors"

	"github.com/ingotml/ingot/manifest"
	"github.com/spf13/cobra"
)

func (a *app) rmCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME...",
		Aliases: []string{"remove"},
		Short:   "Remove models from the store",
		Args:    between(1, -1),
		RunE: func(c *cobra.Command, args []string) error {
			store, err := manifest.Open("")
			if err != nil {
				return err
			}
			for _, arg := range args {
				name, err := manifest.ParseName(arg)
				if err != nil {
					return err
				}
				err = store.Remove(c.Context(), name)
				if errors.Is(err, manifest.ErrBlobsKept) {
					a.note("note: %v", err) // the name is gone, which is what was asked for
				} else if err != nil {
					return err
				}
				a.note("removed %s", name)
			}
			return nil
		},
	}
}
