package cmd

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/cmd/terminal/terminaltest"
)

// The plan of a create, whose names are long, fits in the terminal that shows it, and so does help.
func TestPlanOnPTY(t *testing.T) {
	t.Setenv("INGOT_HOME", t.TempDir())
	for _, args := range [][]string{
		{"create", "x", "../testdata/models/gemma4-26b-a4b", "-q", "int4", "--dry-run"}, {"create", "--help"},
	} {
		control, tty := terminaltest.PTY(t, 80, 24)
		written := make(chan string)
		go func() {
			b, err := io.ReadAll(control)
			if err != nil && !errors.Is(err, syscall.EIO) { // EIO: the other end is closed
				t.Error(err)
			}
			written <- string(b)
		}()
		if code := Main(args, strings.NewReader(""), tty, tty); code != 0 {
			t.Errorf("%v: exit code %d", args, code)
		}
		tty.Close()
		text := strings.ReplaceAll(<-written, "\r\n", "\n")
		if strings.Count(text, "\n") < 20 {
			t.Errorf("%v: %s", args, text)
		}
		for line := range strings.Lines(text) {
			if n := terminal.Columns(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%v: a line of %d columns: %s", args, n, line)
			}
		}
	}
}
