package cmd

import "github.com/spf13/cobra"

// verifyCommands returns the commands of this group.
func (a *app) verifyCommands() []*cobra.Command {
	return []*cobra.Command{a.verifyCmd()}
}
