package cmd

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "rewrite the table of commands in docs/cli.md")

const (
	cliPage  = "../docs/cli.md"
	cliBegin = "<!-- commands: written by `go test ./cmd -run TestCommandTable -update` -->\n"
	cliEnd   = "<!-- end of commands -->\n"
)

// ownCommands visits the commands that users see, without cobra's.
func ownCommands(t *testing.T, visit func(*cobra.Command)) {
	t.Helper()
	commands(t, root(&cli.App{}), func(c *cobra.Command) {
		if !c.Hidden && !cobraCommands[c.Name()] {
			visit(c)
		}
	})
}

// The table in docs/cli.md has all commands with their summaries.
func TestCommandTable(t *testing.T) {
	b, err := os.ReadFile(cliPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), cliBegin)
	_, after, ok2 := strings.Cut(rest, cliEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", cliPage)
	}
	rows := "| Command | Summary |\n|---|---|\n"
	ownCommands(t, func(c *cobra.Command) {
		if c.HasParent() && !c.HasSubCommands() {
			rows += fmt.Sprintf("| `%s` | %s |\n", c.CommandPath(), c.Short)
		}
	})
	want := before + cliBegin + rows + cliEnd + after
	if *update {
		if err := os.WriteFile(cliPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(b) != want {
		t.Errorf("%s differs from the commands: run `go test ./cmd -run TestCommandTable -update`", cliPage)
	}
}

// Arguments are completed: names of models, files, folders, or explicitly nothing.
func TestEveryCommandCompletes(t *testing.T) {
	argument := regexp.MustCompile(`^[a-z]+ \[?[A-Z]`)
	ownCommands(t, func(c *cobra.Command) {
		if argument.MatchString(c.Use) && c.ValidArgsFunction == nil {
			t.Errorf("%s: add its arguments to argCompletions in complete.go", c.CommandPath())
		}
	})
}

// Every command runs in a script, or in a test that gives its arguments as a list.
func TestEveryCommandIsTested(t *testing.T) {
	var tests strings.Builder
	for _, pattern := range []string{"testdata/script/*.txtar", "*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files (%v)", pattern, err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(b)
		}
	}
	ownCommands(t, func(c *cobra.Command) {
		words := strings.ReplaceAll(strings.TrimPrefix(c.CommandPath(), "ingot "), " ", `", "`)
		if !strings.Contains(tests.String(), "exec "+c.CommandPath()) && !strings.Contains(tests.String(), `{"`+words+`"`) {
			t.Errorf("%s: no test runs it; write testdata/script/%s.txtar", c.CommandPath(), c.Name())
		}
	})
}
