package tools

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/manpage"
	"github.com/spf13/cobra"
)

func manCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages of all commands",
		Long: `Write a manual page of section 1 for each command into the folder DIR, and print their names. DIR is
created if it does not exist.

The pages are dated by SOURCE_DATE_EPOCH, or else by the program's commit, so they are reproducible.`,
		Example: `  ingot man ~/.local/share/man/man1`,
		Args:    cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			date, err := manDate()
			if err != nil {
				return err
			}
			h := manpage.Header{Date: date, Source: "ingot " + cli.Version, Manual: "ingot", Sections: manSections}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			for _, sub := range manpage.Commands(c.Root()) {
				var page bytes.Buffer
				if err := manpage.Write(&page, sub, h); err != nil {
					return err
				}
				path := filepath.Join(args[0], manpage.Name(sub))
				if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
					return err
				}
				if _, err := fmt.Fprintln(a.Out, path); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

var manSections = []manpage.Section{
	{Title: "Exit status", Text: `0: done. 1: failed. 2: wrong usage. 130: interrupted.`},
	{
		Title: "Environment",
		Text: `INGOT_HOME is the store (default ~/.ingot). ` +
			`The page docs/cli.md of the project lists all variables.`,
	},
}

// manDate returns the date of the pages, or "". It does not change from run to run, so that builds are reproducible.
func manDate() (string, error) {
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		s, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return "", cli.Usagef("SOURCE_DATE_EPOCH %q is not a number of seconds", epoch)
		}
		return time.Unix(s, 0).UTC().Format(time.DateOnly), nil
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if t, err := time.Parse(time.RFC3339, s.Value); s.Key == "vcs.time" && err == nil {
				return t.UTC().Format(time.DateOnly), nil
			}
		}
	}
	return "", nil
}
