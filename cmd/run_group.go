package cmd

import "github.com/spf13/cobra"

// runCommands returns the commands of this group.
func (a *app) runCommands() []*cobra.Command {
	return []*cobra.Command{a.runCmd()}
}
