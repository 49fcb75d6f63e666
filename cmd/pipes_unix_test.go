//go:build unix

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// pipe makes a named pipe that nobody writes to.
func pipe(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// emptyHome sets a home folder that has nothing, and a store in it.
func emptyHome(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	for name, dir := range map[string]string{
		"HOME": "", "XDG_CONFIG_HOME": ".config", "XDG_CACHE_HOME": ".cache", "XDG_STATE_HOME": ".state",
		"XDG_RUNTIME_DIR": "run", "INGOT_HOME": "store", "INGOT_CACHE": "cache",
	} {
		t.Setenv(name, filepath.Join(home, dir))
	}
	for _, name := range []string{
		"DOCKER_CONFIG", "HF_HOME", "HF_TOKEN", "HF_TOKEN_PATH", "INGOT_CONFIG", "REGISTRY_AUTH_FILE",
	} {
		t.Setenv(name, "")
	}
	return home
}

// TestPipesInPlaces waits for no pipe in a place where the program looks for a file, and names it.
func TestPipesInPlaces(t *testing.T) {
	const registry = "127.0.0.1:9/x/y" // where nothing listens
	for _, c := range []struct {
		file string
		args []string
	}{
		{".docker/config.json", []string{"logout", "127.0.0.1:9"}},
		{"run/containers/auth.json", []string{"logout", "127.0.0.1:9"}},
		{".config/ingot/config.json", []string{"pull", registry}},
		{".config/containers/certs.d/127.0.0.1:9/ca.crt", []string{"pull", registry}},
		{".config/containers/certs.d/127.0.0.1:9/me.cert", []string{"pull", registry}},
		{"work/Modelfile", []string{"create", "m"}},
		{"work/m/config.json", []string{"create", "m", "m"}},
		{"work/m/generation_config.json", []string{"create", "m", "m"}},
		{"work/m/README.md", []string{"create", "m", "m"}},
		{"work/m/model.gguf", []string{"create", "m", "m"}},
		{"work/m/tokenizer.json", []string{"tokenize", "m"}},
		{"work/m/chat_template.jinja", []string{"create", "m", "m"}},
		{"work/oci/oci-layout", []string{"cp", "oci:oci", "m"}},
		{"work/oci/index.json", []string{"cp", "oci:oci", "m"}},
	} {
		t.Run(c.file, func(t *testing.T) {
			home := emptyHome(t)
			work := filepath.Join(home, "work")
			if err := os.MkdirAll(work, 0o700); err != nil {
				t.Fatal(err)
			}
			t.Chdir(work)
			path := filepath.Join(home, filepath.FromSlash(c.file))
			pipe(t, path)
			if strings.HasSuffix(path, ".cert") {
				pipe(t, strings.TrimSuffix(path, ".cert")+".key")
			}
			if strings.HasSuffix(path, "oci/index.json") {
				layout := filepath.Join(filepath.Dir(path), "oci-layout")
				if err := os.WriteFile(layout, []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code, _, errs := runMain(c.args, "")
			if code == 0 || !strings.Contains(errs, filepath.Base(path)) {
				t.Errorf("%v: code %d, %s", c.args, code, errs)
			}
		})
	}
}

// TestPipesGiven reads pipes that the user names, as of <(command).
func TestPipesGiven(t *testing.T) {
	home := emptyHome(t)
	for _, c := range []struct {
		args       []string
		text, want string // of the error: what comes after reading
	}{
		{[]string{"create", "m", "-f", "PIPE", "--dry-run"}, "FROM ./none\n", "PIPE:1:1: "},
		{[]string{"push", "m", "--creds-file", "PIPE"}, "no-colon", ""},
		{[]string{"worker", "--token-file", "PIPE"}, "short\n", "--token-file PIPE: "},
		{[]string{"ls", "--host", "127.0.0.1:9", "--api-key-file", "PIPE"}, "a b c d e f\n", ""},
	} {
		path := filepath.Join(home, "pipe")
		pipe(t, path)
		done := make(chan error, 1)
		go func() { done <- os.WriteFile(path, []byte(c.text), 0) }()
		for i := range c.args {
			c.args[i] = strings.ReplaceAll(c.args[i], "PIPE", path)
		}
		code, _, errs := runMain(c.args, "")
		if want := strings.ReplaceAll(c.want, "PIPE", path); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%v: code %d, %s", c.args, code, errs)
		}
		if strings.Contains(c.want, "PIPE") {
			if err := <-done; err != nil {
				t.Errorf("%v: %v", c.args, err)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
