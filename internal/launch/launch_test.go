package launch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/launch/json5"
)

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func has(t *testing.T, path, want string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || string(b) != want {
		t.Errorf("%s: %q, %v; want %q", path, b, err, want)
	}
}

// A client is also found in its own installation folder outside PATH.
func TestFind(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("programs have a suffix on Windows")
	}
	home := t.TempDir()
	t.Setenv("PATH", t.TempDir())
	for name, place := range map[string]string{"claude": ".claude/local/claude", "opencode": ".opencode/bin/opencode"} {
		c, _ := ByName(name)
		if _, err := c.Find(home); !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "https://") {
			t.Errorf("%s: %v", name, err)
		}
		path := filepath.Join(home, place)
		write(t, path, "", 0o644)
		if _, err := c.Find(home); !errors.Is(err, ErrAbsent) {
			t.Errorf("%s without execute permission: %v", name, err)
		}
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Find(home); err != nil || got != path {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if _, err := c.Find(""); !errors.Is(err, ErrAbsent) {
			t.Errorf("%s without a home: %v", name, err)
		}
	}
}

// Unrelated variables stay, and those that point to other providers are removed.
func TestStart(t *testing.T) {
	s := Setup{URL: "http://127.0.0.1:11434", Model: Model{Name: "m:latest"}, Args: []string{"--", "a"},
		Env: []string{"PATH=/bin", "OPENAI_API_KEY=theirs", "ANTHROPIC_BASE_URL=https://elsewhere", "GEMINI_API_KEY=theirs",
			"EMPTY="}}
	for _, c := range Clients() {
		start := c.Start("/bin/"+c.Name, s)
		if n := len(start.Args); n < 2 || !slices.Equal(start.Args[n-2:], s.Args) {
			t.Errorf("%s: arguments %q", c.Name, start.Args)
		}
		seen := map[string]string{}
		for _, kv := range start.Env {
			name, value, _ := strings.Cut(kv, "=")
			if _, twice := seen[name]; twice {
				t.Errorf("%s: %s is set twice", c.Name, name)
			}
			seen[name] = value
			if strings.Contains(value, "theirs") || strings.Contains(value, "elsewhere") {
				t.Errorf("%s: %s", c.Name, kv)
			}
		}
		if seen["PATH"] != "/bin" || !slices.Contains(start.Env, "EMPTY=") ||
			!slices.Contains(start.Removed, "GEMINI_API_KEY") {
			t.Errorf("%s: %q, without %q", c.Name, start.Env, start.Removed)
		}
	}
}

// Clients on Node.js get the CA that the user has named for a server with TLS.
func TestStartWithCA(t *testing.T) {
	for _, c := range []struct {
		url  string
		env  []string
		want bool
	}{
		{"https://ingot.lan:11434", []string{"SSL_CERT_FILE=/ca.pem"}, true},
		{"https://ingot.lan:11434", []string{"SSL_CERT_FILE=/ca.pem", "NODE_EXTRA_CA_CERTS=/mine.pem"}, false},
		{"https://ingot.lan:11434", nil, false},
		{"http://127.0.0.1:11434", []string{"SSL_CERT_FILE=/ca.pem"}, false},
	} {
		start := Clients()[0].Start("/bin/x", Setup{URL: c.url, Model: Model{Name: "m"}, Env: c.env})
		if got := slices.Contains(start.Env, "NODE_EXTRA_CA_CERTS=/ca.pem"); got != c.want {
			t.Errorf("%s, %q: %q", c.url, c.env, start.Env)
		}
	}
}

// Claude Code waits for slow models, unless the user has set how long.
func TestClaudeWaits(t *testing.T) {
	start := Clients()[0].Start("/bin/x", Setup{URL: "http://127.0.0.1:11434", Model: Model{Name: "m"},
		Env: []string{"API_TIMEOUT_MS=5"}})
	for _, want := range []string{"API_TIMEOUT_MS=5", "CLAUDE_STREAM_IDLE_TIMEOUT_MS=3600000"} {
		if !slices.Contains(start.Env, want) {
			t.Errorf("the client lacks %s: %q", want, start.Env)
		}
	}
}

func TestSave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ingot", "launch.json")
	save := func(client, model string) {
		t.Helper()
		if err := Save(path, client, model); err != nil {
			t.Fatal(err)
		}
	}
	save("claude", "a")
	save("codex", "b")
	save("", "c")
	s, err := ReadSaved(path)
	if err != nil || s.Last != "c" || s.Clients["claude"].Model != "a" || s.Clients["codex"].Model != "b" {
		t.Errorf("%+v, %v", s, err)
	}
	write(t, path, `{"last":"c"}`, 0o600)
	save("", "c")
	has(t, path, `{"last":"c"}`)
	write(t, path, "no JSON", 0o600)
	save("", "c")
	if s, err := ReadSaved(path); err != nil || s.Last != "c" {
		t.Errorf("%+v, %v", s, err)
	}
}

// An edit through a symbolic link changes the link's target and keeps the link.
func TestEditLink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("creating links needs privileges on Windows")
	}
	dir := t.TempDir()
	file, link := filepath.Join(dir, "dotfiles", "real"), filepath.Join(dir, "link")
	write(t, file, `{"a": 1}`, 0o644)
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	changed, err := edit(link, Setup{Key: "k"}, false, func(d *json5.Document) error { return d.Set(2, "a") })
	if err != nil || !changed {
		t.Fatal(changed, err)
	}
	has(t, file, `{"a": 2}`)
	has(t, link+backup, `{"a": 1}`)
	if to, err := os.Readlink(link); err != nil || to != file {
		t.Errorf("the link points to %s, %v", to, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", ".ingot-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files remain: %v, %v", left, err)
	}
}

func TestOpenclawFile(t *testing.T) {
	home := t.TempDir()
	old := filepath.Join(home, ".clawdbot", "clawdbot.json")
	at := func(env ...string) string {
		file, _ := openclawFile(Setup{Home: home, Env: env})
		return file
	}
	if got := at(); got != filepath.Join(home, ".openclaw", "openclaw.json") {
		t.Error(got)
	}
	write(t, old, "{}", 0o600)
	if got := at(); got != old {
		t.Error(got)
	}
	if got := at("OPENCLAW_STATE_DIR=/state"); got != filepath.Join("/state", "openclaw.json") {
		t.Error(got)
	}
	if got := at("OPENCLAW_CONFIG_PATH=/config"); got != "/config" {
		t.Error(got)
	}
	write(t, filepath.Join(home, ".openclaw", "openclaw.json"), "{}", 0o600)
	if got := at(); got == old {
		t.Error(got)
	}
}
