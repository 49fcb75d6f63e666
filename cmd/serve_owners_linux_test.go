package cmd_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// secretAsks are a prompt in each API.
var secretAsks = [][2]string{
	{"/api/generate", `{"model":"demo","prompt":"The launch code is 7 4 1 9","stream":false,"options":{"num_predict":1}}`},
	{"/v1/completions", `{"model":"demo","prompt":"The launch code is 7 4 1 9","max_tokens":1}`},
	{"/v1/chat/completions", `{"model":"demo","messages":[{"role":"user","content":"The code is 7 4 1"}],"max_tokens":1}`},
	{"/v1/responses", `{"model":"demo","input":"The launch code is 7 4 1 9","max_output_tokens":16}`},
	{"/v1/messages", `{"model":"demo","messages":[{"role":"user","content":"The code is 7 4 1 9"}],"max_tokens":1}`},
}

var cachedField = regexp.MustCompile(`"(?:cached_tokens|cache_read_input_tokens)":(\d+)`)

// ask sends a request with a key, and returns how many tokens the response says were cached, and how many tokens were
// computed for the key so far.
func (s *served) ask(t *testing.T, key string, ask [2]string) (cached int) {
	t.Helper()
	text := s.with(t, key, "POST", ask[0], ask[1])
	m := cachedField.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("%s: %s", ask[0], text)
	}
	cached, _ = strconv.Atoi(m[1])
	return cached
}

// with sends a request with a key and returns the response.
func (s *served) with(t *testing.T, key, method, path, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", key)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", path, response.StatusCode, b, err)
	}
	return string(b)
}

// computed returns the tokens of prompts that were computed for a key.
func (s *served) computed(t *testing.T, key, name string) (n int) {
	t.Helper()
	text := s.with(t, key, "GET", "/metrics", "")
	m := regexp.MustCompile(`ingot_key_tokens_total\{key="` + name + `",of="prompt"\} (\d+)`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no tokens of %s:\n%s", name, text)
	}
	n, _ = strconv.Atoi(m[1])
	return n
}

// A key's prompts continue what the same key has sent, in memory and on disk, and nothing of another key: its prompt is
// computed as if nobody had sent it. With --share-cache keys share all, and what cache warm evaluates serves all keys.
func TestOwnersOfCaches(t *testing.T) {
	dir := t.TempDir()
	var file strings.Builder
	for i := range secretAsks {
		fmt.Fprintf(&file, "alice%d ka%d\nbob%d kb%d\n", i, i, i, i)
	}
	file.WriteString("carol kc\ndave kd\n")
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--api-key-file", path, "--cache-dir", dir}
	s := startServer(t, nil, args...)
	for i, ask := range secretAsks {
		a, b := fmt.Sprint("ka", i), fmt.Sprint("kb", i)
		if n := s.ask(t, a, ask); n != 0 {
			t.Errorf("%s: %d cached for the first key", ask[0], n)
		}
		if n := s.ask(t, b, ask); n != 0 {
			t.Errorf("%s: %d cached for another key", ask[0], n)
		}
		mine, other := s.computed(t, a, fmt.Sprint("alice", i)), s.computed(t, b, fmt.Sprint("bob", i))
		if mine != other || mine < 5 {
			t.Errorf("%s: %d tokens computed for the first key, %d for another", ask[0], mine, other)
		}
		if n := s.ask(t, a, ask); n < mine/2 {
			t.Errorf("%s: %d of %d cached for the same key", ask[0], n, mine)
		}
	}
	again := func(more ...string) {
		t.Helper()
		_ = s.Process.Signal(os.Interrupt)
		_ = s.Wait()
		s = serveStore(t, s.home, nil, append(args, more...)...)
	}
	again()
	if n := s.ask(t, "kc", secretAsks[1]); n != 0 {
		t.Errorf("%d cached for another key, on disk", n)
	}
	if n := s.ask(t, "ka1", secretAsks[1]); n < 5 {
		t.Errorf("%d cached for the same key, on disk", n)
	}
	again("--share-cache")
	if n := s.ask(t, "ka2", secretAsks[2]); n != 0 {
		t.Errorf("%d cached of what a key has kept for itself", n)
	}
	if n := s.ask(t, "kb2", secretAsks[2]); n < 5 {
		t.Errorf("%d cached for another key, with --share-cache", n)
	}
	const begin = "Once upon a time there was a town in the snow and an old clock"
	system := filepath.Join(t.TempDir(), "begin")
	if err := os.WriteFile(system, []byte(begin), 0o600); err != nil {
		t.Fatal(err)
	}
	warm := struct{ Tokens int }{}
	text := ingot(t, s.home, "cache", "warm", "demo", "--prompt", system, "--raw", "--cache-dir", dir, "--json")
	if err := json.Unmarshal([]byte(text), &warm); err != nil || warm.Tokens < 10 {
		t.Fatal(text, err)
	}
	again()
	for _, key := range []string{"kc", "kd"} {
		ask := [2]string{"/v1/completions", fmt.Sprintf(`{"model":"demo","prompt":%q,"max_tokens":1}`, begin+" of "+key)}
		if n := s.ask(t, key, ask); n < warm.Tokens-1 {
			t.Errorf("%s: %d of %d tokens of what cache warm has evaluated are cached", key, n, warm.Tokens)
		}
	}
}
