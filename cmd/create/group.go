// Package create has the commands that make model images, or tell what they would be.
package create

import (
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands of this group.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		createCommand(a), quantizeCommand(a), calibrateCommand(a), fitCommand(a),
	}
}
