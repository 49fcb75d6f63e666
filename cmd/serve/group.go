// Package serve has the server, the processes that it starts, and the commands that use a running server.
package serve

import (
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands of this group.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		serveCommand(a), batchCommand(a), psCommand(a), stopCommand(a), launchCommand(a),
		workerCommand(a), cacheCommand(a), runnerCommand(a), followCommand(a),
	}
}
