package cmd_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ingotml/ingot/cmd/terminal/terminaltest"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/server/identity"
	"github.com/ingotml/ingot/server/ollama"
)

// runTerminal is a terminal that runs `ingot run`.
type runTerminal interface {
	press(t *testing.T, keys string)
	screen(t *testing.T) string // all output, including lines that scrolled out of view
	over(t *testing.T) bool     // the program has ended successfully
}

// ptyTerminal is a pseudo-terminal.
type ptyTerminal struct {
	control *os.File
	mu      sync.Mutex
	shown   *terminaltest.Screen
	written bytes.Buffer // all output, byte for byte
	ended   chan struct{}
	err     error // exit status
}

func startOnPTY(t *testing.T, c *exec.Cmd) runTerminal {
	t.Helper()
	control, tty := terminaltest.PTY(t, 80, 24)
	c.Stdin, c.Stdout, c.Stderr = tty, tty, tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s := &ptyTerminal{control: control, shown: terminaltest.NewRaw(t, 80, 24), ended: make(chan struct{})}
	go func() {
		s.err = c.Wait()
		close(s.ended)
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 4096)
		for {
			n, err := control.Read(b)
			s.mu.Lock()
			_, _ = s.shown.Write(b[:n])
			_, _ = s.written.Write(b[:n])
			s.mu.Unlock()
			if err != nil { // the other end is closed
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-s.ended
		tty.Close()
		<-done
	})
	return s
}

func (s *ptyTerminal) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := io.WriteString(s.control, keys); err != nil {
		t.Fatal(err)
	}
}

func (s *ptyTerminal) screen(*testing.T) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.Text()
}

func (s *ptyTerminal) over(t *testing.T) bool {
	select {
	case <-s.ended:
		if s.err != nil {
			t.Errorf("it ended with %v", s.err)
		}
		return true
	default:
		return false
	}
}

// tmuxTerminal is a window of tmux, an independent terminal emulator.
type tmuxTerminal struct{ socket string }

func startInTmux(t *testing.T, c *exec.Cmd) runTerminal {
	t.Helper()
	s := &tmuxTerminal{filepath.Join(t.TempDir(), "tmux")}
	path, err := exec.LookPath("ingot")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "tmux.conf")
	if err := os.WriteFile(config, []byte("set -g remain-on-exit on\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"-f", config, "new-session", "-d", "-x", "80", "-y", "24", "env"}
	for _, v := range c.Env {
		if !strings.HasPrefix(v, "TERM=") && !strings.HasPrefix(v, "TMUX") {
			args = append(args, v)
		}
	}
	s.tmux(t, append(append(args, path), c.Args[1:]...)...)
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", s.socket, "kill-server").Run() })
	return s
}

func (s *tmuxTerminal) tmux(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (s *tmuxTerminal) press(t *testing.T, keys string) {
	t.Helper()
	args := []string{"send-keys", "-H"}
	for _, b := range []byte(keys) {
		args = append(args, hex.EncodeToString([]byte{b}))
	}
	s.tmux(t, args...)
}

func (s *tmuxTerminal) screen(t *testing.T) string {
	var lines []string
	for line := range strings.Lines(s.tmux(t, "capture-pane", "-p", "-J", "-S", "-2000")) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

func (s *tmuxTerminal) over(t *testing.T) bool {
	// tmux sometimes reports dead panes late or never. The pseudo-terminal checks the exit status.
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(s.tmux(t, "display-message", "-p", "#{pane_pid}")) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// user types keys and checks the output, starting at the last prompt but one.
type user struct {
	runTerminal
	t *testing.T
}

// does types keys and waits for texts in order, after the last place that shows the keys.
func (u user) does(keys string, want ...string) {
	u.t.Helper()
	before := strings.Count(u.screen(u.t), ">>>")
	u.press(u.t, keys)
	u.sees(before, want...)
}

// sees waits for texts in order, after the prompt with this number.
func (u user) sees(prompt int, want ...string) {
	u.t.Helper()
	var text string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		text = u.screen(u.t)
		rest, ok := text, true
		for range prompt - 1 {
			_, rest, _ = strings.Cut(rest, ">>>")
		}
		for _, w := range want {
			if _, rest, ok = strings.Cut(rest, w); !ok {
				break
			}
		}
		if ok {
			return
		}
	}
	u.t.Fatalf("%q did not come; the screen:\n%s", want, text)
}

// TestRunOnTerminal runs conversations on a pseudo-terminal, and in tmux if runtest.Terminal demands it.
func TestRunOnTerminal(t *testing.T) {
	t.Run("pty", func(t *testing.T) { drive(t, startOnPTY) })
	t.Run("tmux", func(t *testing.T) {
		runtest.Terminal.Only(t)
		_, err := exec.LookPath("tmux")
		runtest.Terminal.Need(t, err)
		drive(t, startInTmux)
	})
}

func drive(t *testing.T, open func(*testing.T, *exec.Cmd) runTerminal) {
	home, state := filepath.Join(t.TempDir(), "store"), t.TempDir()
	engine, why := installedEngine()
	start := func(t *testing.T, env string, args ...string) user {
		c := command(home, append([]string{"run"}, args...)...)
		c.Env = append(c.Env, "XDG_STATE_HOME="+state, "HOME="+state, "INGOT_ENGINE="+engine, "TERM=xterm", "NO_COLOR=", env)
		u := user{open(t, c), t}
		u.sees(0, ">>> a message, or /? for help")
		return u
	}
	testdata, err := filepath.Abs(filepath.Join("..", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	create := func(name, lines string) {
		file := filepath.Join(t.TempDir(), "Modelfile")
		if err := os.WriteFile(file, []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
		ingot(t, home, "create", name, "-f", file)
	}
	const template = `TEMPLATE "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"` +
		"\nPARAMETER temperature 0\nPARAMETER num_predict 12\n"
	create("story", "FROM "+filepath.Join(testdata, "models", "demo")+"\n"+template)
	create("sees", "FROM "+filepath.Join(testdata, "models",
		"qwen3_5-vision")+"\nPARAMETER temperature 0\nPARAMETER num_predict 4\n")

	t.Run("keys", func(t *testing.T) { keysOnTerminal(t, home, start) })
	t.Run("model", func(t *testing.T) {
		runtest.Engine.Need(t, why)
		u := start(t, "INGOT_HOST=", "story", "--local")
		const up, older, ready = "\x1b[A", "\x10", ">>> a message"
		u.does("Once upon a time\r", "Once upon a time\n", "there was", ready)
		u.does("/set verbose\r", ready)
		u.does("and then\r", "and then\n", "of them cached, in", "generated: 12", ready)
		u.does("/show parameters\r", "num_predict 12\n", "temperature 0\n", ready)
		u.does("/save mine\r", "saved mine:latest@sha256:", ready)
		u.does("/load sees\r", ready)
		// 8 of them are the picture
		u.does("what is "+filepath.Join(testdata, "pictures", "shapes.png")+"\r", "prompt: 29 tokens", ready)
		u.does("what is "+filepath.Join(testdata, "pictures", "nosuch.png")+"\r", "does not exist", ready)
		u.does("/load mine\r", ">>> Once upon a time\n", "there was", ">>> and then\n", ready)
		u.does("\x04")
		ended(t, u)
		u = start(t, "INGOT_HOST=", "mine", "--local")
		u.does(up, ">>> /load mine") // from the other session
		u.does(older+older+older+older, ">>> /save mine")
		u.does("\x15/bye\r")
		ended(t, u)
	})
}

// ended waits for the end of the program.
func ended(t *testing.T, u user) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if u.over(t) {
			return
		}
	}
	t.Fatalf("it did not end; the screen:\n%s", u.screen(t))
}

// keysOnTerminal chats with a server that echoes its input. The response to "go on" never ends.
func keysOnTerminal(t *testing.T, home string, start func(*testing.T, string, ...string) user) {
	store, err := store.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{}, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case identity.Path:
			p, err := identity.Prove(store, r)
			if err != nil {
				t.Error(err)
			}
			_ = json.NewEncoder(w).Encode(p)
			return
		case "/api/version":
			_ = json.NewEncoder(w).Encode(ollama.VersionJSON{Version: "1", Ingot: "1", Store: identity.StoreID(store)})
			return
		}
		var q struct {
			Messages []struct{ Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		last := q.Messages[len(q.Messages)-1].Content
		text, _ := json.Marshal(fmt.Sprintf("%d: %q", len(q.Messages), last))
		fmt.Fprintf(w, `{"message":{"content":%s}}`+"\n", text)
		if last == "go on" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			stopped <- struct{}{}
			return
		}
		fmt.Fprintln(w, `{"done":true,"done_reason":"stop"}`)
	}))
	t.Cleanup(s.Close)
	const up, left, ready = "\x1b[A", "\x1b[D", ">>> a message"
	u := start(t, "INGOT_HOST="+s.URL, "story")
	u.does("hello\r", `1: "hello"`, ready)
	u.does("wrld"+left+left+left+"o\r", `3: "world"`, ready)
	u.does("\"\"\"one\r", "... ")
	u.does("two\"\"\"\r", `5: "one\ntwo"`, ready)
	u.does("\x1b[200~first\r  second\x1b[201~", ">>> first\n...   second")
	u.does("\r", `7: "first\n  second"`, ready)
	u.does("three\x1b\rfour\r", `9: "three\nfour"`, ready)
	u.does(up+up+up+up+up, ">>> \"\"\"one\n... two\"\"\"") // in a message of two lines, Up first moves up a line
	u.does(up+up+"\r", `11: "world"`, ready)
	u.does("go on\r", `13: "go on"`)
	u.press(t, "\x03")
	<-stopped
	u.does("more\r", ">>> more\n", `15: "more"`, ready) // the stopped response is part of the conversation
	u.does("half\x03", ">>> half\n", ready)
	u.does("\x03", "Press Ctrl-D or type /bye to leave.", ready)
	u.does("go on\r", `17: "go on"`)
	s.CloseClientConnections() // the server dies in the middle of a response
	u.sees(0, "the server is gone: ", ready)
	<-stopped
	u.does("/clear\r", ready)
	u.does("again\r", `1: "again"`, ready)
	u.does("\x04")
	ended(t, u)
}
