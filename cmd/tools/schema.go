package tools

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/grammar"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/spf13/cobra"
)

func schemaCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "schema",
		Short: "Check JSON schemas for structured output",
		Args:  cli.Between(0, 0),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(schemaCheckCommand(a))
	return c
}

func schemaCheckCommand(a *cli.App) *cobra.Command {
	var o schemaCheckOptions
	c := &cobra.Command{
		Use:   "check",
		Short: "Say whether a schema compiles and what it accepts",
		Long: `Compile a JSON schema as --format does, and check JSON instances against it: an instance is accepted
if the model could write it, with its properties in the schema's order, in any spelling of its numbers
and with any white space. No model is involved. The exit code is 1 if the schema is refused or an
instance is not accepted.

--refs names a folder whose .json files a $ref may lead to: by their $id, or by their path in the folder
after URI. Nothing is fetched.

--jsonl reads lines of {"schema": ..., "instances": [...]} and prints a line of JSON for each:
{"compiles": true, "error": "", "compile_us": 120, "accepted": [true, false]}.`,
		Example: `  ingot schema check --schema cat.schema.json --instance cat.json
  ingot schema check --jsonl - < schemas.jsonl`,
		Args: cli.Between(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return schemaCheck(c.Context(), a, o) },
	}
	f := c.Flags()
	f.StringVar(&o.schema, "schema", "", "check the schema in `file`; - is standard input")
	f.StringArrayVar(&o.instances, "instance", nil, "check the instance in `file`; may be repeated")
	f.StringVar(&o.lines, "jsonl", "", "check the lines of `file`; - is standard input")
	f.BoolVar(&o.compile.Strict, "strict-schema", false, "refuse keywords that the specification lacks")
	f.BoolVar(&o.compile.BestEffort, "best-effort", false, "leave out what cannot be enforced, and say so")
	f.StringVar(&o.refs, "refs", "", "resolve references to the schemas in `[URI=]folder`")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return c
}

type schemaCheckOptions struct {
	schema, lines string
	refs          string
	instances     []string
	compile       grammar.SchemaOptions
	json          bool
}

func schemaCheck(ctx context.Context, a *cli.App, o schemaCheckOptions) error {
	switch {
	case (o.schema == "") == (o.lines == ""):
		return cli.Usagef("one of --schema and --jsonl is needed")
	case o.lines != "" && len(o.instances) > 0:
		return cli.Usagef("--instance needs --schema; the lines of --jsonl have their own instances")
	}
	if o.refs != "" {
		address, folder, ok := strings.Cut(o.refs, "=")
		if !ok {
			address, folder = "", o.refs
		}
		var err error
		if o.compile.Refs, err = grammar.SchemaRefs(folder, address); err != nil {
			return err
		}
	}
	if o.lines != "" {
		return schemaCheckLines(ctx, a, o)
	}
	source, err := readSchemaFile(a, o.schema)
	if err != nil {
		return err
	}
	instances := make([][]byte, len(o.instances))
	for i, path := range o.instances {
		if instances[i], err = readSchemaFile(a, path); err != nil {
			return err
		}
	}
	check := grammar.CheckSchema(ctx, source, instances, o.compile)
	if o.json {
		err = a.PrintJSON(check)
	} else {
		err = printSchemaCheck(a, o, check)
	}
	if err == nil && (!check.Compiles || !allTrue(check.Accepted)) {
		err = cli.ErrFailed
	}
	return err
}

func allTrue(all []bool) bool {
	for _, b := range all {
		if !b {
			return false
		}
	}
	return true
}

func readSchemaFile(a *cli.App, path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(a.In, limits.GrammarSource+1))
	}
	return os.ReadFile(path)
}

func printSchemaCheck(a *cli.App, o schemaCheckOptions, check grammar.SchemaCheck) error {
	if !check.Compiles {
		_, err := fmt.Fprintf(a.Out, "refused: %s\n", check.Error)
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "compiles in %d us to %d places\n", check.CompileUS, check.Places)
	if check.Empty {
		b.Reset()
		fmt.Fprintf(&b, "compiles in %d us; no value satisfies it\n", check.CompileUS)
	}
	if check.Example != "" {
		fmt.Fprintf(&b, "shortest: %s\n", check.Example)
	}
	for _, what := range check.LeftOut {
		fmt.Fprintf(&b, "not enforced: %s\n", what)
	}
	for i, path := range o.instances {
		verdict := "not accepted"
		if check.Accepted[i] {
			verdict = "accepted"
		}
		fmt.Fprintf(&b, "%s: %s\n", path, verdict)
	}
	_, err := io.WriteString(a.Out, b.String())
	return err
}

// schemaLine is a line of --jsonl.
type schemaLine struct {
	Schema    json.RawMessage   `json:"schema"`
	Instances []json.RawMessage `json:"instances"`
}

func schemaCheckLines(ctx context.Context, a *cli.App, o schemaCheckOptions) error {
	in := a.In
	if o.lines != "-" {
		f, err := os.Open(o.lines)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	lines := bufio.NewReaderSize(in, 1<<16)
	out := json.NewEncoder(a.Out)
	out.SetEscapeHTML(false)
	for n := 1; ctx.Err() == nil; n++ {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var check grammar.SchemaCheck
			var l schemaLine
			if wrong := json.Unmarshal(line, &l); wrong != nil {
				check = grammar.SchemaCheck{Error: fmt.Sprintf("line %d is not JSON with schema and instances: %v", n, wrong),
					Accepted: []bool{}}
			} else {
				instances := make([][]byte, len(l.Instances))
				for i, raw := range l.Instances {
					instances[i] = raw
				}
				check = grammar.CheckSchema(ctx, l.Schema, instances, o.compile)
			}
			if err := out.Encode(check); err != nil {
				return err
			}
			if err := a.Out.Flush(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}
