package cmd

import "github.com/spf13/cobra"

// storeCommands returns the commands of this group.
func (a *app) storeCommands() []*cobra.Command {
	return []*cobra.Command{
		a.lsCmd(), a.showCmd(), a.cpCmd(), a.tagCmd(), a.rmCmd(), a.pruneCmd(),
		a.dfCmd(), a.fsckCmd(), a.exportCmd(), a.extractCmd(),
	}
}
