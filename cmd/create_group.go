package cmd

import "github.com/spf13/cobra"

// createCommands returns the commands of this group.
func (a *app) createCommands() []*cobra.Command {
	return []*cobra.Command{
		a.createCmd(), a.quantizeCmd(), a.calibrateCmd(), a.fitCmd(),
	}
}
