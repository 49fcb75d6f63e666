package cmd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/ingotml/ingot/cmd"
	"github.com/ingotml/ingot/cmd/terminal/terminaltest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/server/identity"
	"github.com/ingotml/ingot/server/ollama"
)

// evilServer starts a model server with evil responses, split in the middle of sequences. With fails it responds with
// errors.
func evilServer(t *testing.T, store *store.Store, fails bool) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		write := func(v any) {
			if err := json.NewEncoder(w).Encode(v); err != nil {
				t.Error(err)
			}
		}
		type object = map[string]any
		switch {
		case r.URL.Path == "/api/prove":
			proof, err := identity.Prove(store, r)
			if err != nil {
				t.Error(err)
			}
			write(proof)
		case r.URL.Path == "/api/version":
			write(ollama.VersionJSON{Version: evil, Ingot: "1" + evil, Store: identity.StoreID(store)})
		case fails:
			w.WriteHeader(http.StatusBadRequest)
			write(object{"error": evil})
		case r.URL.Path == "/api/ps":
			write(object{"models": []object{{"name": evil, "model": evil, "digest": evil, "size": 1}}})
		case r.URL.Path == "/api/tags":
			write(object{"models": []object{{"name": evil}}})
		case r.URL.Path == "/api/show":
			write(object{"capabilities": []string{evil}})
		case r.URL.Path == "/api/chat", r.URL.Path == "/api/generate":
			for _, field := range []string{"thinking", "content"} {
				for i := range len(evil) + 1 {
					if piece := strings.ToValidUTF8(evil[i:min(i+1, len(evil))], ""); piece != "" {
						write(object{"message": object{field: piece}})
					}
				}
				write(object{"message": object{field: evil + "end of " + field}})
			}
			call := object{"function": object{"name": evil, "arguments": object{evil: evil}}}
			write(object{"message": object{"tool_calls": []object{call}}})
			write(object{"done": true, "done_reason": "stop"})
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, evil)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// evilModel creates a store with a model named base whose texts are evil.
func evilModel(t *testing.T) (home string, st *store.Store) {
	t.Helper()
	home = filepath.Join(t.TempDir(), "store")
	t.Setenv("INGOT_HOME", home)
	demo, err := filepath.Abs(filepath.Join("..", "testdata", "models", "demo"))
	if err != nil {
		t.Fatal(err)
	}
	evilTexts(t, home, demo)
	if st, err = store.Open(home); err != nil {
		t.Fatal(err)
	}
	return home, st
}

// TestEvilServer checks that the terminal displays the responses of a server and a model, and interprets nothing of
// them.
func TestEvilServer(t *testing.T) {
	_, store := evilModel(t)
	t.Setenv("HOME", t.TempDir())
	for _, fails := range []bool{false, true} {
		t.Setenv("INGOT_HOST", evilServer(t, store, fails))
		for _, args := range [][]string{
			{"ps"}, {"ps", "-v"}, {"ps", "--json"}, {"stop", "base"}, {"run", "base", "hello"},
			{"run", "base", "hello", "--verbose"},
			{"run", "base", "hello", "--raw"}, {"run", "base", "hello", "--json"},
			{"launch", "claude", "--model", "base", "--config-only"},
		} {
			shown, code := onTerminal(t, args...)
			// /api/generate responds in another field
			all := args[len(args)-1] == "--raw" || strings.Contains(shown, "end of content")
			switch {
			case fails && (code == 0 || args[0] != "launch" && !strings.Contains(shown, `\u001b[2J`)):
				t.Errorf("ingot %q: exit code %d, %q", args, code, shown)
			case fails && strings.Contains(shown, "\nname  forged"):
				t.Errorf("ingot %q: an error of several lines: %q", args, shown)
			case !fails && args[0] == "run" && (code != 0 || !all):
				t.Errorf("ingot %q: exit code %d, %q", args, code, shown)
			case !fails && args[0] == "ps" && (code != 0 || !strings.Contains(shown, `\u001b[2J`)):
				t.Errorf("ingot %q: exit code %d, %q", args, code, shown)
			}
		}
	}
	t.Setenv("INGOT_HOST", evilServer(t, store, false))
	var out, errs bytes.Buffer
	code := cmd.Main([]string{"run", "base", "hello"}, strings.NewReader(""), &out, &errs)
	if code != 0 || !strings.Contains(out.String(), evil+"end of content") {
		t.Errorf("a file gets %q, not the text as it is; %s", out.String(), errs.String())
	}
}

// drawn matches the program's own sequences: the editor's, and those of wrapping and of thinking. The input and the
// responses of this test contain none of them.
var drawn = regexp.MustCompile(`\x1b\[\?2004[hl]|\x1b\[[0-9]+[AC]|\x1b\[J|\x1b\[[0-9]+D\x1b\[K|\x1b\[[02]m|\r`)

// TestEvilConversation does the same in a conversation, with evil messages in the image and the history.
func TestEvilConversation(t *testing.T) {
	home, store := evilModel(t)
	state := t.TempDir()
	history := filepath.Join(state, "ingot", "run-history")
	if err := os.MkdirAll(filepath.Dir(history), 0o700); err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal("old " + strings.ReplaceAll(evil, "\n", " "))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(history, append(line, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	c := command(home, "run", "base")
	c.Env = append(c.Env, "XDG_STATE_HOME="+state, "HOME="+state, "TERM=xterm", "NO_COLOR=",
		"INGOT_HOST="+evilServer(t, store, false))
	tty := startOnPTY(t, c).(*ptyTerminal)
	u := user{tty, t}
	const ready = ">>> a message"
	u.sees(0, `user\u001b[2J`, `assistant\u001b[2J`, ready)
	u.does("hello\r", `\u001b`, "thinking", "content", ready)
	for _, command := range []string{"/show system", "/show template", "/show license", "/show modelfile", "/show info",
		"/show parameters"} {
		u.does(command+"\r", "[2J", ready)
	}
	u.does("\x10\x10\x10\x10\x10\x10\x10\x10", `>>> old \u001b[2J\u001b]0;title`)
	u.does("\x15/bye\r")
	ended(t, u)
	tty.mu.Lock()
	defer tty.mu.Unlock()
	if bad := firstControl(string(drawn.ReplaceAll(tty.written.Bytes(), nil))); bad != "" {
		t.Errorf("%q was let through in %q", bad, tty.written.String())
	}
}

// TestEvilTokens runs a model whose full stop decodes to an escape character.
func TestEvilTokens(t *testing.T) {
	needEngine(t)
	home, dir := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "model")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "testdata", "models", "demo"))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "tokenizer.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	v := decoded(t, b).(map[string]any)
	vocabulary := v["model"].(map[string]any)["vocab"].(map[string]any)
	const stop, escape = ".", "\u011b" // the byte 0x1b in byte-level tokenizers
	vocabulary[stop], vocabulary[escape] = vocabulary[escape], vocabulary[stop]
	if b, err = json.Marshal(v); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	ingot(t, home, "create", "evil", dir)
	control, tty := terminaltest.PTY(t, 80, 24)
	run := []string{"run", "evil", "Once upon a time", "--local", "--temperature", "0", "--max-tokens", "80"}
	c := command(home, run...)
	c.Env = append(c.Env, "TERM=dumb")
	var errs bytes.Buffer
	c.Stdout, c.Stderr = tty, &errs
	done := make(chan []byte)
	go func() {
		b, err := io.ReadAll(control)
		if err != nil && !errors.Is(err, syscall.EIO) {
			t.Error(err)
		}
		done <- b
	}()
	err = c.Run()
	tty.Close()
	if shown := string(<-done); err != nil || firstControl(shown) != "" || !strings.Contains(shown, `\u001b`) {
		t.Errorf("%v, %s: %q is let through in %q", err, errs.String(), firstControl(shown), shown)
	}
	if out := ingot(t, home, run...); !strings.Contains(out, "\x1b") {
		t.Errorf("a file gets %q", out)
	}
}
