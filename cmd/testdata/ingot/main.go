// Command ingot is the program that cmd's tests run: ingot, which takes its version from AS_VERSION, like a release
// build.
package main

import (
	"cmp"
	"os"

	"github.com/ingotml/ingot/cmd"
	"github.com/ingotml/ingot/cmd/cli"
)

func main() {
	cli.Version = cmp.Or(os.Getenv("AS_VERSION"), cli.Version)
	os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
