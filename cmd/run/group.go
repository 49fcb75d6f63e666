// Package run has the command that runs a model: for one response or in a session on a terminal, in this process or on
// a server.
package run

import (
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands of this group.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{runCommand(a)}
}
