package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/runtime"
)

// readFormat returns the format of the flags.
func (o runOptions) readFormat(ctx context.Context) (runtime.Format, error) {
	f, err := readFormat(ctx, o.format)
	if err != nil {
		return f, err
	}
	if f.Kind != "" && !f.HasSchemas() && (o.strictSchema || o.bestEffort) {
		return f, cli.Usagef("--strict-schema and --best-effort need a --format with a schema")
	}
	return o.schemas(f), nil
}

// schemas returns a format with the flags for its schemas.
func (o runOptions) schemas(f runtime.Format) runtime.Format {
	schemas := f.HasSchemas()
	f.StrictSchema, f.BestEffort = o.strictSchema && schemas, o.bestEffort && schemas
	return f
}

// readFormat parses the value of --format: json, a JSON schema, a structural tag, regex:PATTERN, ebnf:GRAMMAR,
// lark:GRAMMAR, or a file with one of them. A file whose name ends in .lark has a grammar of that kind.
func readFormat(ctx context.Context, value string) (runtime.Format, error) {
	kind, _, _ := strings.Cut(value, ":")
	switch {
	case value == "":
		return runtime.Format{}, nil
	case strings.HasPrefix(strings.TrimSpace(value), "{"):
		return runtime.ParseFormat([]byte(value))
	case value == "json", kind != value && slices.Contains([]string{"regex", "ebnf", "lark"}, kind):
		text, err := json.Marshal(value)
		if err != nil {
			return runtime.Format{}, fmt.Errorf("--format: %w", err)
		}
		return runtime.ParseFormat(text)
	}
	text, err := cli.Await(ctx, func() ([]byte, error) { return os.ReadFile(value) })
	if err != nil {
		const want = "json, a schema, regex:PATTERN, ebnf:GRAMMAR or lark:GRAMMAR"
		return runtime.Format{}, fmt.Errorf("--format: not %s, and not a file: %w", want, err)
	}
	switch {
	case bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")):
		return runtime.ObjectFormat(text), nil
	case strings.HasSuffix(value, ".lark"):
		return runtime.Format{Kind: runtime.FormatLark, Source: string(text)}, nil
	}
	return runtime.Format{Kind: runtime.FormatEBNF, Source: string(text)}, nil
}
