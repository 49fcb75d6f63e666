package transfer

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/cmd/terminal/terminaltest"
	"github.com/ingotml/ingot/registry"
)

// TestTransferOnPTY checks the screen of a real terminal, with its detected size, during and after a transfer.
func TestTransferOnPTY(t *testing.T) {
	t.Setenv("TERM", "xterm")
	control, tty := terminaltest.PTY(t, 60, 10)
	p := NewProgress(&cli.App{Err: terminal.Notes(tty)}, "pull", false)
	if p.style != cli.OnTerminal {
		t.Fatalf("style %d", p.style)
	}
	p.Set(registry.Event{Kind: registry.Plan, Total: 200})
	p.Set(blob(registry.Begin, "model.norm.weight", 0, 200))
	p.Set(blob(registry.Moved, "model.norm.weight", 100, 200))
	if columns, _ := p.screen.Size(); columns != 60 {
		t.Fatalf("%d columns", columns)
	}
	time.Sleep(3 * p.style.Every()) // it redraws on a timer
	p.Set(blob(registry.Done, "model.norm.weight", 200, 200))
	p.End()
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
