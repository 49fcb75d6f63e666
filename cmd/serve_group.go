package cmd

import "github.com/spf13/cobra"

// serveCommands returns the commands of this group.
func (a *app) serveCommands() []*cobra.Command {
	return []*cobra.Command{
		a.serveCmd(), a.batchCmd(), a.psCmd(), a.stopCmd(), a.launchCmd(),
		a.workerCmd(), a.cacheCmd(), a.runnerCmd(), a.followCmd(),
	}
}
