// Command sbom writes the bill of materials of a built ingot, as CycloneDX 1.6 in JSON:
//
//	go run ./cmd/supply/sbom [-version VERSION] bin/ingot >ingot.cdx.json
//
// The modules are those that the linker recorded in the program, whatever system it was built for. The engine's
// packages for that system follow as optional components, since `ingot engine install` adds them. Equal programs have
// equal bills: nothing in them depends on the time or the machine.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/ingotml/ingot/cmd/supply/parts"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	version := flags.String("version", "", "version of the release; default what the linker recorded")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("usage: sbom [-version VERSION] PROGRAM")
	}
	p, err := readProgram(flags.Arg(0))
	if err != nil {
		return err
	}
	if *version != "" {
		p.info.Main.Version = *version
	}
	modules, err := parts.Modules(ctx)
	if err != nil {
		return err
	}
	wheels, err := parts.Wheels(p.platform)
	if err != nil {
		return err
	}
	b, err := p.bill(modules, wheels)
	if err != nil {
		return err
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(b)
}
