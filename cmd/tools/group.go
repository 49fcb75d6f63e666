// Package tools has the commands for single steps, such as tokenization, and those about the program itself.
package tools

import (
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands of this group.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		tokenizeCommand(a), templateCommand(a), schemaCommand(a), engineCommand(a),
		versionCommand(a), manCommand(a),
	}
}
