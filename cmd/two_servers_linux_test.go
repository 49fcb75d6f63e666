package cmd_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestTwoServers runs two servers of the same store and cache folder with the same model. Clients get the server that
// they name, and the end of one does not affect the other. The API key appears in no command line, no model's process
// and no file of the store.
func TestTwoServers(t *testing.T) {
	const key = "s3cret-key-of-two-servers"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	a := startServer(t, []string{"HF_TOKEN=" + key}, "--cache-dir", dir, "--api-key-file", file)
	b := serveStore(t, a.home, []string{"INGOT_API_KEY=" + key}, "--cache-dir", dir)
	servers := []*served{a, b}

	var wg sync.WaitGroup
	texts := make([][2]string, len(servers))
	for i, s := range servers {
		wg.Go(func() { // both load the model at the same time
			for turn := range texts[i] {
				c := command(s.home, "run", "demo", "--raw", "Once upon a time", "--temperature", "0", "--max-tokens", "12",
					"--verbose", "--api-key-file", file)
				c.Env = append(c.Env, "INGOT_HOST="+s.addr)
				var out, errs bytes.Buffer
				c.Stdout, c.Stderr = &out, &errs
				if err := c.Run(); err != nil || !strings.Contains(errs.String(), "using the server at http://"+s.addr) {
					t.Errorf("run: %v, %s", err, errs.String())
				}
				texts[i][turn] = out.String()
			}
		})
	}
	wg.Wait()
	for i := range texts {
		for _, text := range texts[i] {
			if text != texts[0][0] || len(text) < 5 {
				t.Errorf("server %d printed %q, the first %q", i, text, texts[0][0])
			}
		}
	}

	for _, s := range servers {
		child := s.childWithKey(t, key)
		for _, pid := range []int{s.Process.Pid, child} {
			for _, name := range []string{"cmdline", "environ"} {
				b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
				if err != nil || len(b) == 0 {
					t.Errorf("%s of %d: %v", name, pid, err)
				}
				// The server's own environment contains the key, but only its user can read that.
				if bytes.Contains(b, []byte(key)) && (name == "cmdline" || pid == child) {
					t.Errorf("the key is in the %s of %d", name, pid)
				}
			}
		}
	}
	err := filepath.WalkDir(a.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(key)) {
			t.Errorf("the key is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}

	// One server unloads the model, and the other keeps it.
	at := func(s *served, args ...string) (string, error) {
		c := command(s.home, append(args, "--api-key-file", file)...)
		c.Env = append(c.Env, "INGOT_HOST="+s.addr)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	of := []int{a.childWithKey(t, key), b.childWithKey(t, key)}
	if out, err := at(a, "stop", "demo"); err != nil || out != "" {
		t.Errorf("stop: %s, %v", out, err)
	}
	gone(t, of[0])
	if out, err := at(a, "ps"); err != nil || strings.Contains(out, "demo") {
		t.Errorf("ps of the first: %s, %v", out, err)
	}
	if out, err := at(b, "ps"); err != nil || !strings.Contains(out, "demo:latest") || !running(of[1]) {
		t.Errorf("ps of the second: %s, %v", out, err)
	}
	_ = b.Process.Kill()
	_ = b.Wait()
	gone(t, of[1])
	if out, err := at(b, "ps"); err == nil || !strings.Contains(out, "no server at http://"+b.addr) {
		t.Errorf("ps of one that was killed: %s, %v", out, err)
	}
	if out, err := at(a, "run", "demo", "--raw", "Once upon a time", "--temperature", "0", "--max-tokens",
		"12"); err != nil || out != texts[0][0] {
		t.Errorf("the one that is left: %q, %v", out, err)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(files) == 0 {
		t.Errorf("no state is in the folder that both have: %v, %v", files, err)
	}
	ingot(t, a.home, "fsck") // fails if there are problems
}

// childWithKey returns the process of the model "demo" of a server that requires a key.
func (s *served) childWithKey(t *testing.T, key string) int {
	t.Helper()
	r, err := http.NewRequest("GET", "http://"+s.addr+"/api/ps", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	pid := 0
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for _, m := range lastLine(t, response.Body)["models"].([]any) {
		if m := m.(map[string]any); m["name"] == "demo:latest" {
			pid = int(m["pid"].(float64))
		}
	}
	if pid == 0 {
		t.Fatal("the model has no process")
	}
	return pid
}
