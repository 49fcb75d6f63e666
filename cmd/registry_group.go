package cmd

import "github.com/spf13/cobra"

// registryCommands returns the commands of this group.
func (a *app) registryCommands() []*cobra.Command {
	return []*cobra.Command{
		a.pushCmd(), a.pullCmd(), a.tagsCmd(), a.inspectCmd(), a.deleteCmd(),
		a.checkCmd(), a.searchCmd(), a.loginCmd(), a.logoutCmd(), a.signCmd(),
		a.attachCmd(), a.discoverCmd(),
	}
}
