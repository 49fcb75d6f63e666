package cmd

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/cmd/terminal/terminaltest"
	"github.com/ingotml/ingot/registry"
)

// TestTransferOnPTY checks the screen of a real terminal, with its detected size, during and after a transfer.
func TestTransferOnPTY(t *testing.T) {
	t.Setenv("TERM", "xterm")
	control, tty := terminaltest.PTY(t, 60, 10)
	p := (&app{err: terminal.Notes(tty)}).transferProgress("pull", false)
	if p.style != onTerminal {
		t.Fatalf("style %d", p.style)
	}
	p.set(registry.Event{Kind: registry.Plan, Total: 200})
	p.set(blob(registry.Begin, "model.norm.weight", 0, 200))
	p.set(blob(registry.Moved, "model.norm.weight", 100, 200))
	if columns, _ := p.screen.size(); columns != 60 {
		t.Fatalf("%d columns", columns)
	}
	time.Sleep(3 * progressEvery) // it redraws on a timer
	p.set(blob(registry.Done, "model.norm.weight", 200, 200))
	p.end()
	tty.Close()
	written, err := io.ReadAll(control)
	if err != nil && !errors.Is(err, syscall.EIO) { // EIO: the other end is closed
		t.Fatal(err)
	}
	if !bytes.Contains(written, []byte("pulling 100 B of 200 B")) || !bytes.Contains(written, []byte("50%")) {
		t.Errorf("nothing was drawn while it went on: %q", written)
	}
	v := terminaltest.New(t, 60, 10)
	v.Write(written)
	if got := v.Text(); !strings.HasPrefix(got, "pulled 200 B in ") || strings.Count(got, "\n") != 1 {
		t.Errorf("the screen after it: %q", got)
	}
}

// TestNotOnDumbTerminal checks that a dumb terminal gets no escape sequences.
func TestNotOnDumbTerminal(t *testing.T) {
	_, tty := terminaltest.PTY(t, 60, 10)
	t.Setenv("TERM", "dumb")
	if got := (&app{err: terminal.Notes(tty)}).progressStyle(false); got != plainLines {
		t.Errorf("style %d", got)
	}
}
