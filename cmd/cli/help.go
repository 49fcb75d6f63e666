package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/internal/limits/near"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Widths of help: that of the terminal, but no wider than is easy to read.
const (
	plainColumns = 80 // of a file or a pipe
	mostColumns  = 100
)

// Help prints the help of a command.
func (a *App) Help(c *cobra.Command, _ []string) {
	columns, _ := a.Out.Size()
	columns = min(cmp.Or(columns, plainColumns), mostColumns)
	fmt.Fprint(a.Out, helpText(c, columns))
}

func helpText(c *cobra.Command, columns int) string {
	about := strings.TrimSpace(cmp.Or(c.Long, c.Short))
	return terminal.Fill(about+"\n\n"+c.UsageString(), columns)
}

// FlagError returns the error for a wrong flag.
func FlagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		err = fmt.Errorf("%w%s", err, similarFlags(c, unknown))
	case errors.As(err, &invalid):
		if want := wantedValue[invalid.GetFlag().Value.Type()]; want != "" {
			err = fmt.Errorf("--%s %q is not %s", invalid.GetFlag().Name, invalid.GetValue(), want)
		}
	}
	return Usagef("%v; see `%s --help`", err, c.CommandPath())
}

// wantedValue says what the flags of a type accept. The flags of other types have errors of their own.
var wantedValue = map[string]string{
	"float64": "a number", "int": "a whole number", "int64": "a whole number", "uint": "a whole number",
	"bool": "true or false", "duration": "a duration such as 30s or 5m",
}

// similarFlags suggests flags with a name near to an unknown one.
func similarFlags(c *cobra.Command, unknown *pflag.NotExistError) string {
	if unknown.GetSpecifiedShortnames() != "" {
		return ""
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return similar("--", near.Names(unknown.GetSpecifiedName(), names))
}

// UnknownCommand returns the error for an unknown subcommand.
func UnknownCommand(c *cobra.Command, name string) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
			names = append(names, sub.Aliases...)
		}
	}
	return Usagef("unknown command %q%s; `%s --help` lists them", name, similar("", near.Names(name, names)),
		c.CommandPath())
}

// similar formats suggestions.
func similar(prefix string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; similar: " + prefix + strings.Join(names, ", "+prefix)
}
