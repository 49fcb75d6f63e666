package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"text/template"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/spf13/cobra"
)

// FormatFlags choose the output format of a listing.
type FormatFlags struct {
	format string
	json   bool
}

const goTemplate = "go-template="

// Add adds the flags.
func (o *FormatFlags) Add(c *cobra.Command) {
	c.Flags().StringVar(&o.format, "format", "table", "table, json, or a Go template such as '{{.Name}}'")
	c.Flags().BoolVar(&o.json, "json", false, "same as --format json")
}

// Parse returns the template, nil if there is none, and whether to print JSON.
func (o *FormatFlags) Parse(c *cobra.Command) (*template.Template, bool, error) {
	if o.json && c.Flags().Changed("format") && o.format != "json" {
		return nil, false, Usagef("--json and --format cannot be combined")
	}
	switch {
	case o.json || o.format == "json":
		return nil, true, nil
	case o.format == "table":
		return nil, false, nil
	}
	// Accept both spellings: docker's bare template and kubectl's go-template= prefix.
	text, named := strings.CutPrefix(o.format, goTemplate)
	if !named && (!strings.Contains(text, "{{") || strings.HasPrefix(text, "table ")) {
		return nil, false, Usagef("--format %q: want table, json or a Go template such as '{{.Name}}'", o.format)
	}
	functions := template.FuncMap{"json": jsonText, "size": Size, "join": strings.Join}
	t, err := template.New("format").Option("missingkey=zero").Funcs(functions).Parse(text)
	if err != nil {
		return nil, false, Usagef("--format: %v", err)
	}
	return t, false, nil
}

func jsonText(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return terminal.Clean(strings.TrimSuffix(b.String(), "\n")), err
}

// PrintEach executes the template for each item, one line each. If one fails, it prints nothing.
func PrintEach[T any](a *App, t *template.Template, items ...T) error {
	var b bytes.Buffer
	for _, item := range items {
		if err := t.Execute(&b, item); err != nil {
			return Usagef("--format: %v", err)
		}
		b.WriteByte('\n')
	}
	_, err := b.WriteTo(a.Out)
	return err
}

// Output is the output format.
type Output struct {
	*App
	Template *template.Template
	JSON     bool
}

// Print prints a value as JSON, with the template, or with people.
func Print[T any](o Output, value T, people func(*App) error) error {
	switch {
	case o.JSON:
		return o.PrintJSON(value)
	case o.Template != nil:
		return PrintEach(o.App, o.Template, value)
	}
	return people(o.App)
}
