package store

import (
	"errors"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/spf13/cobra"
)

func rmCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME...",
		Aliases: []string{"remove"},
		Short:   "Remove models from the store",
		Long: `Remove models from the store. If one of them does not exist, none is removed. Blobs that no other model
uses are removed too, and so are the signatures and other artifacts of a model without any name left.`,
		Args: cli.Between(1, -1),
		RunE: func(c *cobra.Command, args []string) error {
			names, err := parseNames(args)
			if err != nil {
				return err
			}
			store, err := a.OpenStore()
			if err != nil {
				return err
			}
			err = collect.Remove(c.Context(), store, names...)
			if errors.Is(err, manifest.ErrBlobsKept) {
				a.Note("note: %v", err) // the names are removed; only the blobs remain for now
			} else if err != nil {
				return err
			}
			for _, name := range names {
				a.Note("removed %s", name)
			}
			return nil
		},
	}
}

func parseNames(args []string) ([]manifest.Name, error) {
	var names []manifest.Name
	for _, arg := range args {
		if isPattern(arg) {
			return nil, cli.Usagef("%q is a pattern; to remove the models that match, run `ingot rm $(ingot ls -q '%s')`",
				arg, arg)
		}
		name, err := manifest.ParseName(arg)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}
