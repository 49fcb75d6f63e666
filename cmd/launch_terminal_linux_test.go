package cmd_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ingotml/ingot/cmd/terminal/terminaltest"
)

// terminalProcess is a program with a terminal of its own.
type terminalProcess struct {
	*exec.Cmd
	control *os.File
	screen  *lockedBuffer
}

// startOnTerminal starts a command of the program on a terminal.
func startOnTerminal(t *testing.T, home string, env []string, args ...string) *terminalProcess {
	t.Helper()
	control, tty := terminaltest.PTY(t, 120, 30)
	s := &terminalProcess{Cmd: command(home, args...), control: control, screen: &lockedBuffer{}}
	s.Env = append(s.Env, env...)
	s.Stdin, s.Stdout, s.Stderr = tty, tty, tty
	s.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	go func() { _, _ = io.Copy(s.screen, control) }()
	t.Cleanup(func() { _ = s.Process.Kill() })
	return s
}

// expect waits until the screen contains a text.
func (s *terminalProcess) expect(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(s.screen.String(),
		text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the screen lacks %q:\n%s", text, s.screen)
		}
	}
}

// press types keys.
func (s *terminalProcess) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := s.control.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// ends waits for the end and checks the exit status.
func (s *terminalProcess) ends(t *testing.T, want int) {
	t.Helper()
	err := s.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || s.ProcessState.ExitCode() != want {
		t.Errorf("%v, want exit status %d\n%s", err, want, s.screen)
	}
}

// TestLaunchOnTerminal checks that launch asks for missing arguments, and that the client gets the terminal.
func TestLaunchOnTerminal(t *testing.T) {
	dir := t.TempDir()
	home, bin := filepath.Join(dir, "store"), filepath.Join(dir, "bin")
	for _, name := range []string{"demo", "other"} {
		ingot(t, home, "create", name, filepath.Join("..", "testdata", "models", "demo"))
	}
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"claude": "#!/bin/sh\nprintf 'model %s> ' \"$ANTHROPIC_MODEL\"\nread line\necho \"heard $line\"\nexit 3\n",
		"npm":    "#!/bin/sh\necho npm is not wanted\n",
		"git":    "#!/bin/sh\n",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	addr, stop, err := modelServer(home, "")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	env := []string{"HOME=" + dir, "XDG_STATE_HOME=", "INGOT_HOST=" + addr, "PATH=" + bin + ":" + os.Getenv("PATH")}
	saved := filepath.Join(dir, ".local", "state", "ingot", "launch.json")

	s := startOnTerminal(t, home, env, "launch", "claude")
	s.expect(t, "model [demo:latest]: ")
	s.press(t, "\x03")
	s.ends(t, 130)
	if _, err := os.Stat(saved); err == nil {
		t.Error("a model is remembered that was not chosen")
	}

	s = startOnTerminal(t, home, env, "launch", "claude")
	s.expect(t, "model [demo:latest]: ")
	s.press(t, "2\n")
	s.expect(t, "model other:latest> ")
	s.press(t, "hello\n")
	s.expect(t, "heard hello")
	s.ends(t, 3)

	s = startOnTerminal(t, home, env, "launch") // asks for the client first, and offers the last model
	s.expect(t, "launch [run]: ")
	s.press(t, "claude\n")
	s.expect(t, "model [other:latest]: ")
	s.press(t, "\n")
	s.expect(t, "model other:latest> ")
	s.press(t, "\x03") // handled by the client
	_ = s.Wait()
	if status, ok := s.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGINT {
		t.Errorf("the client ends with %v", s.ProcessState)
	}

	s = startOnTerminal(t, home, env, "launch", "openclaw", "--model", "demo")
	s.expect(t, "install it with `npm install -g openclaw@latest`? [y/N] ")
	s.press(t, "n\n")
	s.expect(t, "OpenClaw is not installed")
	s.ends(t, 1)

	s = startOnTerminal(t, home, env, "launch", "claude", "--model", "registry.example/none")
	s.expect(t, "registry.example/none:latest is missing; pull it? [y/N] ")
	s.press(t, "\n")
	s.expect(t, "not found")
	s.ends(t, 1)
	for _, path := range []string{".openclaw", ".clawdbot"} {
		if _, err := os.Stat(filepath.Join(dir, path)); err == nil {
			t.Errorf("%s was made", path)
		}
	}
}
