package registry

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/cmd/terminal/terminaltest"
	"golang.org/x/sys/unix"
)

// TestLoginAsks checks that login asks for name and password on a terminal, and does not echo the password.
func TestLoginAsks(t *testing.T) {
	control, tty := terminaltest.PTY(t, 80, 24)
	var out bytes.Buffer
	a := &cli.App{In: tty, Out: terminal.Data(io.Discard), Err: terminal.Notes(&out)}
	type login struct {
		user, password string
		err            error
	}
	got := make(chan login)
	go func() {
		user, password, err := credentials(context.Background(), a, "example.com", "", false)
		got <- login{user, password, err}
	}()
	io.WriteString(control, "ann\n")
	shown := make([]byte, 100)
	n, _ := control.Read(shown) // the echo of the name
	for deadline := time.Now().Add(10 * time.Second); ; {
		state, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		if state.Lflag&unix.ECHO == 0 || time.Now().After(deadline) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	io.WriteString(control, "secret\n")
	a1 := <-got
	if a1.user != "ann" || a1.password != "secret" || a1.err != nil {
		t.Errorf("%+v", a1)
	}
	tty.Close()
	rest, _ := io.ReadAll(control)
	if all := string(shown[:n]) + string(rest); strings.Contains(all, "secret") || !strings.Contains(all, "ann") {
		t.Errorf("the terminal shows %q", all)
	}
	if want := "user name for example.com: password or token of ann: \n"; out.String() != want {
		t.Errorf("notes %q", out.String())
	}
}
