package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/cli/clitest"
	"github.com/ingotml/ingot/cmd/terminal"
)

// TestNotesAreLines checks that standard error is clean in a file too, and that a note or an error is one line.
func TestNotesAreLines(t *testing.T) {
	var errs bytes.Buffer
	a := &App{Err: terminal.Notes(&errs)}
	a.Note("the server says: %s", clitest.Foul) // like the log of `ingot serve`
	a.ExitCode(t.Context(), fmt.Errorf("pull: %s", clitest.Foul))
	a.ExitCode(t.Context(), Usagef("%s", clitest.Foul))
	clitest.CheckClean(t, "notes", errs.String())
	if strings.Count(errs.String(), "\n") != 3 {
		t.Errorf("not three lines: %q", &errs)
	}
	errs.Reset()
	io.WriteString(a.ChildErr(), clitest.Foul)
	clitest.CheckClean(t, "what a model's process says", errs.String())
}
