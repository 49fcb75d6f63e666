package cli

import (
	"testing"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/cmd/terminal/terminaltest"
)

// TestNotOnDumbTerminal checks that a dumb terminal gets no escape sequences.
func TestNotOnDumbTerminal(t *testing.T) {
	_, tty := terminaltest.PTY(t, 60, 10)
	t.Setenv("TERM", "dumb")
	if got := (&App{Err: terminal.Notes(tty)}).Style(false); got != PlainLines {
		t.Errorf("style %d", got)
	}
}
