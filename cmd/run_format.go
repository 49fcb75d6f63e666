package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/ingotml/ingot/runtime"
)

// readFormat returns the format of the flags.
func (o runOptions) readFormat(ctx context.Context) (runtime.Format, error) {
	f, err := readFormat(ctx, o.format)
	if err != nil {
		return f, err
	}
	schemas := f.Kind == runtime.FormatSchema || f.Kind == runtime.FormatEBNF
	if f.Kind != "" && !schemas && (o.strictSchema || o.bestEffort) {
		return f, usagef("--strict-schema and --best-effort need a --format with a schema")
	}
	return o.schemas(f), nil
}

// schemas returns a format with the flags for its schemas.
func (o runOptions) schemas(f runtime.Format) runtime.Format {
	schemas := f.Kind == runtime.FormatSchema || f.Kind == runtime.FormatEBNF
	f.StrictSchema, f.BestEffort = o.strictSchema && schemas, o.bestEffort && schemas
	return f
}

// readFormat parses the value of --format: json, a JSON schema, regex:PATTERN, ebnf:GRAMMAR, or a file with a schema or
// a grammar.
func readFormat(ctx context.Context, value string) (runtime.Format, error) {
	kind, _, _ := strings.Cut(value, ":")
	switch {
	case value == "":
		return runtime.Format{}, nil
	case strings.HasPrefix(strings.TrimSpace(value), "{"):
		return runtime.ParseFormat([]byte(value))
	case value == "json", kind != value && slices.Contains([]string{"regex", "ebnf"}, kind):
		text, err := json.Marshal(value)
		if err != nil {
			return runtime.Format{}, fmt.Errorf("--format: %w", err)
		}
		return runtime.ParseFormat(text)
	}
	text, err := await(ctx, func() ([]byte, error) { return os.ReadFile(value) })
	if err != nil {
		return runtime.Format{}, fmt.Errorf("--format: not json, a schema, regex:PATTERN or ebnf:GRAMMAR, and not a file: %w",
			err)
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return runtime.Format{Kind: runtime.FormatSchema, Source: string(text)}, nil
	}
	return runtime.Format{Kind: runtime.FormatEBNF, Source: string(text)}, nil
}
