// Package registry has the commands that move images between registries and the store, and show what registries have.
package registry

import (
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands of this group.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		pushCommand(a), pullCommand(a), tagsCommand(a), inspectCommand(a), deleteCommand(a),
		checkCommand(a), searchCommand(a), loginCommand(a), logoutCommand(a), signCommand(a),
		attachCommand(a), discoverCommand(a),
	}
}
