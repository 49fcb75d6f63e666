package store

import (
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/spf13/cobra"
)

func tagCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "tag SRC DST",
		Short: "Add a name to a model in the store",
		Long: `Add the name DST to the model SRC. Both names refer to the same blobs, which are kept until the last name
is removed. If DST exists, it is replaced.`,
		Example: `  ingot tag mymodel registry.example.com/team/mymodel:v1
  ingot push registry.example.com/team/mymodel:v1`,
		Args: cli.Between(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			names, err := parseNames(args)
			if err != nil {
				return err
			}
			store, err := a.OpenStore()
			if err != nil {
				return err
			}
			if err := store.Tag(c.Context(), names[0], names[1]); err != nil {
				return err
			}
			a.Note("tagged %[2]s as %[1]s", names[1], names[0])
			return nil
		},
	}
}
