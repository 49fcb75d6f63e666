package cmd

import "github.com/spf13/cobra"

// toolsCommands returns the commands of this group.
func (a *app) toolsCommands() []*cobra.Command {
	return []*cobra.Command{
		a.tokenizeCmd(), a.templateCmd(), a.schemaCmd(), a.engineCmd(),
		a.versionCmd(), a.manCmd(),
	}
}
