// Command ingot packs, verifies and runs model images. See package cmd for its subcommands.
package main

import (
	"os"

	"github.com/ingotml/ingot/cmd"
)

func main() { os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
