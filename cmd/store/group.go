// Package store has the commands that list, show, copy and remove the models of the store.
package store

import (
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands of this group.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		lsCommand(a), showCommand(a), cpCommand(a), tagCommand(a), rmCommand(a), pruneCommand(a),
		dfCommand(a), fsckCommand(a), exportCommand(a), extractCommand(a),
	}
}
