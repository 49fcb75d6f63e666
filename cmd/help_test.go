package cmd

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestHelp checks the rules of docs/style.md for help: flags' texts are one line under 60 characters, summaries and
// descriptions start with a capital letter, and descriptions have lines of at most 120 columns.
func TestHelp(t *testing.T) {
	commands(t, root(&cli.App{}), func(c *cobra.Command) {
		if cobraCommands[c.Name()] {
			return
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || strings.ToUpper(c.Short[:1]) != c.Short[:1] {
			t.Errorf("%s: summary %q", c.CommandPath(), c.Short)
		}
		for line := range strings.Lines(c.Long + "\n" + c.Example) {
			if n := utf8.RuneCountInString(line); n > 120 {
				t.Errorf("%s: a line of %d columns: %s", c.CommandPath(), n, line)
			}
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, usage := pflag.UnquoteUsage(f)
			if n := utf8.RuneCountInString(usage); n == 0 || n >= 60 || strings.Contains(usage, "\n") {
				t.Errorf("%s --%s: %d characters: %s", c.CommandPath(), f.Name, n, usage)
			}
		})
	})
}

// Help fits in the terminal's width. Its words stay, and so do the lines of examples, which users copy.
func TestHelpFits(t *testing.T) {
	const columns = 80 // of a file
	var out bytes.Buffer
	a := &cli.App{Out: terminal.Data(&out)}
	commands(t, root(a), func(c *cobra.Command) {
		if cobraCommands[c.Name()] {
			return
		}
		out.Reset()
		if err := errors.Join(c.Help(), a.Out.Flush()); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
				t.Errorf("%s: a line of %d columns: %s", c.CommandPath(), n, line)
			}
		}
		if !strings.Contains(text, strings.TrimRight(c.Example, "\n")) {
			t.Errorf("%s: an example is wider than %d columns:\n%s", c.CommandPath(), columns, c.Example)
		}
		all := c.Long + c.UsageString()
		if c.Long == "" {
			all = c.Short + "\n" + all
		}
		words := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if words(text) != words(all) {
			t.Errorf("%s: help has lost words:\n%s", c.CommandPath(), text)
		}
	})
}

// cobraCommands are commands that cobra itself defines.
var cobraCommands = map[string]bool{
	"completion": true, "bash": true, "zsh": true, "fish": true, "powershell": true, "help": true,
}
