package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/spf13/cobra"
)

// TestHolderHasNoArguments checks that the note of a command that holds the store's lock names the command without its
// arguments, which may contain secrets.
func TestHolderHasNoArguments(t *testing.T) {
	home := filepath.Join(t.TempDir(), "store")
	t.Setenv("INGOT_HOME", home)
	old := os.Args
	os.Args = []string{filepath.Join("bin", "ingot"), "hold", "s3cret", "--api-key=s3cret"}
	defer func() { os.Args = old }()
	a := &cli.App{In: strings.NewReader(""), Out: terminal.Data(&bytes.Buffer{}), Err: terminal.Notes(&bytes.Buffer{})}
	root := root(a)
	var notes []string
	root.AddCommand(&cobra.Command{Use: "hold", FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE: func(c *cobra.Command, _ []string) error {
			store, err := a.OpenStore()
			if err != nil {
				return err
			}
			release, err := store.Lock(c.Context())
			if err != nil {
				return err
			}
			defer release()
			files, err := filepath.Glob(filepath.Join(home, "holders", "*"))
			for _, file := range files {
				b, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				notes = append(notes, string(b))
			}
			return err
		}})
	root.SetArgs(os.Args[1:])
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], `"command":"ingot hold"`) || strings.Contains(notes[0], "s3cret") {
		t.Errorf("the notes of holders are %q", notes)
	}
}
