package cmd

import (
	"github.com/spf13/cobra"
)

func (a *app) tagCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "tag SRC DST",
		Short: "Give a model of the store a second name",
		Long: `Give a model of the store a second name. Both lead to the same blobs, which stay until the last name is removed.
A name that exists is replaced.`,
		Example: `  ingot tag mymodel registry.example.com/team/mymodel:v1
  ingot push registry.example.com/team/mymodel:v1`,
		Args: between(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			names, err := parseNames(args)
			if err != nil {
				return err
			}
			store, err := a.openStore()
			if err != nil {
				return err
			}
			if err := store.Tag(c.Context(), names[0], names[1]); err != nil {
				return err
			}
			a.note("%s is %s now", names[1], names[0])
			return nil
		},
	}
}
