package cmd

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/spf13/cobra"
)

// The page for people who come from other tools names commands and flags that exist, and every command for registries.
func TestComingFrom(t *testing.T) {
	b, err := os.ReadFile("../docs/coming-from.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, line := range regexp.MustCompile("`ingot [^`]*`|(?m)^ +ingot [^#\n]*").FindAllString(string(b), -1) {
		words := strings.Fields(strings.Trim(line, "` "))[1:]
		c, rest, err := root(&cli.App{}).Find(words)
		if err != nil || !c.HasParent() {
			t.Errorf("%s: no such command: %v", line, err)
			continue
		}
		named[c.Name()] = true
		for _, w := range rest {
			if !hasFlag(c, w) {
				t.Errorf("%s: %s has no %s", line, c.CommandPath(), w)
			}
		}
	}
	for _, name := range []string{"attach", "check", "cp", "create", "delete", "discover", "extract", "inspect", "login",
		"pull", "push", "run", "tags"} {
		if !named[name] {
			t.Errorf("the page does not name ingot %s", name)
		}
	}
}

// hasFlag reports whether a word of a command line is no flag, or one of the command's.
func hasFlag(c *cobra.Command, word string) bool {
	name, isLong := strings.CutPrefix(word, "--")
	name, _, _ = strings.Cut(name, "=")
	switch {
	case isLong:
		return c.Flags().Lookup(name) != nil || c.InheritedFlags().Lookup(name) != nil
	case strings.HasPrefix(word, "-") && word != "-":
		return c.Flags().ShorthandLookup(word[1:]) != nil
	}
	return true
}
