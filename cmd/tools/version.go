package tools

import (
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/spf13/cobra"
)

func versionCommand(a *cli.App) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of ingot and its engine",
		Args:  cli.Between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.PrintJSON(cli.CurrentVersion())
			}
			return a.PrintVersion()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
