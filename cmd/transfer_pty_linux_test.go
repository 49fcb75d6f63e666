package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ingotml/ingot/cmd/terminal/terminaltest"
	"github.com/ingotml/ingot/registry"
	"golang.org/x/sys/unix"
)

// pty gives both ends of a terminal of this size.
func pty(t *testing.T, columns, rows int) (control, terminal *os.File) {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there are no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { control.Close() })
	n, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(control.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return control, terminal
}

// TestTransferOnPTY: on a real terminal, as it is found and measured, the screen is right while blobs move and after it.
func TestTransferOnPTY(t *testing.T) {
	t.Setenv("TERM", "xterm")
	control, tty := pty(t, 60, 10)
	p := (&app{err: tty}).transferProgress("pull", false)
	if p.style != onTerminal {
		t.Fatalf("style %d", p.style)
	}
	p.set(registry.Event{Kind: registry.Plan, Total: 200})
	p.set(blob(registry.Begin, "model.norm.weight", 0, 200))
	p.set(blob(registry.Moved, "model.norm.weight", 100, 200))
	if columns, _ := p.screen.size(); columns != 60 {
		t.Fatalf("%d columns", columns)
	}
	time.Sleep(3 * progressEvery) // it draws by itself
	p.set(blob(registry.Done, "model.norm.weight", 200, 200))
	p.end()
	tty.Close()
	written, err := io.ReadAll(control)
	if err != nil && !errors.Is(err, syscall.EIO) { // how Linux tells that the other end is closed
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

// TestNotOnDumbTerminal: a terminal that knows no escape sequences gets none.
func TestNotOnDumbTerminal(t *testing.T) {
	_, tty := pty(t, 60, 10)
	t.Setenv("TERM", "dumb")
	if got := (&app{err: tty}).progressStyle(false); got != plainLines {
		t.Errorf("style %d", got)
	}
}
