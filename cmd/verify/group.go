// Package verify has the command that verifies a model. Each of its ways has a file.
package verify

import (
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands of this group.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{verifyCommand(a)}
}
