package cmd_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
)

// served is a server process.
type served struct {
	*exec.Cmd
	addr string
	home string
	temp string // its TMPDIR
	errs *lockedBuffer
}

// lockedBuffer is written by a process and read by a test.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// startServer serves the models "demo" and "other".
func startServer(t *testing.T, env []string, args ...string) *served {
	t.Helper()
	needEngine(t)
	home := filepath.Join(t.TempDir(), "store")
	for _, name := range []string{"demo", "other"} {
		ingot(t, home, "create", name, filepath.Join("..", "testdata", "models", "demo"))
	}
	return serveStore(t, home, env, args...)
}

// needEngine skips the test without an engine, unless the engine is required.
func needEngine(t *testing.T) {
	t.Helper()
	_, why := installedEngine()
	runtest.Engine.Need(t, why)
}

// serveStore serves the models of a store.
func serveStore(t *testing.T, home string, env []string, args ...string) *served {
	t.Helper()
	return serveIn(t, home, "", env, args...)
}

// serveIn serves the models of a store in a control group, given by its file of processes, or "".
func serveIn(t *testing.T, home, group string, env []string, args ...string) *served {
	t.Helper()
	c := command(home, append([]string{"serve", "--host", "127.0.0.1:0"}, args...)...)
	if group != "" {
		c.Args = append(append(inGroup(group), c.Path), c.Args[1:]...)
		c.Path = "/bin/sh"
	}
	c.Env = append(c.Env, env...)
	return serveCommand(t, home, c)
}

// inGroup is the beginning of a command that enters a control group, given by its file of processes.
func inGroup(group string) []string {
	return []string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, group}
}

// serveCommand starts a server command and waits until it listens.
func serveCommand(t *testing.T, home string, c *exec.Cmd) *served {
	t.Helper()
	s := &served{Cmd: c, home: home, temp: t.TempDir(), errs: &lockedBuffer{}}
	s.Env = append(s.Env, "TMPDIR="+s.temp)
	pipe, err := s.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(pipe)
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("the server printed %q, %v", line, err)
	}
	s.addr = strings.TrimSpace(strings.TrimPrefix(line, "listening on http://"))
	go func() { _, _ = io.Copy(s.errs, r) }()
	t.Cleanup(func() {
		_ = s.Process.Kill()
		_ = s.Wait()
	})
	return s
}

// post sends a request and returns the response, a stream of JSON lines.
func (s *served) post(t *testing.T, path, body string) *http.Response {
	t.Helper()
	response, err := http.Post("http://"+s.addr+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// whole sends a request and returns the last line of the response.
func (s *served) whole(t *testing.T, path, body string) map[string]any {
	t.Helper()
	response := s.post(t, path, body)
	defer response.Body.Close()
	return lastLine(t, response.Body)
}

func lastLine(t *testing.T, r io.Reader) (last map[string]any) {
	t.Helper()
	d := json.NewDecoder(r)
	for {
		var m map[string]any
		err := d.Decode(&m)
		if err == io.EOF {
			return last
		}
		if err != nil {
			t.Fatal(err)
		}
		last = m
	}
}

const story = `{"model":"demo","prompt":"Once upon a time",` +
	`"options":{"temperature":0,"ignore_eos":true,"num_predict":%d,"stop":["%s"]}}`

// TestServe exercises a server like its users do.
func TestServe(t *testing.T) {
	s := startServer(t, nil, "--models", "1")
	ingotAt := func(args ...string) (string, error) {
		c := command(s.home, args...)
		c.Env = append(c.Env, "INGOT_HOST="+s.addr)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	first := s.whole(t, "/api/generate", fmt.Sprintf(story, 20, "~"))
	if first["done"] != true || first["eval_count"] != 20.0 {
		t.Fatalf("generate: %v\n%s", first, s.errs)
	}
	chat := s.whole(t, "/api/chat",
		`{"model":"demo","messages":[{"role":"user","content":"Once upon a time"}],"stream":false,`+
			`"options":{"temperature":0,"num_predict":20,"ignore_eos":true}}`)
	if got := chat["message"].(map[string]any)["content"].(string); !strings.Contains(got, " ") {
		t.Errorf("chat: %v", chat)
	}
	if stats := chat["stats"].(map[string]any); stats["cached_tokens"].(float64) < 1 {
		t.Errorf("the same prompt again: %v", stats)
	}
	out, err := ingotAt("ps")
	if err != nil || !strings.Contains(out, "demo:latest") {
		t.Errorf("ps: %s, %v", out, err)
	}

	out, err = ingotAt("ps", "-v")
	// A run before may have left prefixes on the disk.
	row := regexp.MustCompile(`demo:latest .* [0-9]+ +0 +0 +0 B +[0-9.]+ [kM]?B( \+ [0-9.]+ [kM]?B on disk)? +` +
		`[1-9][0-9]?% of [0-9]+ tokens`)
	if err != nil || !row.MatchString(out) {
		t.Errorf("ps -v: %s, %v", out, err)
	}

	// Another model needs the memory.
	demo := s.children(t)["demo:latest"]
	if s.whole(t, "/api/generate", `{"model":"other"}`)["done_reason"] != "load" {
		t.Error("the other model was not loaded")
	}
	gone(t, demo)
	if c := s.children(t); len(c) != 1 || c["other:latest"] == 0 {
		t.Errorf("loaded: %v", c)
	}

	// The keep-alive time ends.
	other := s.children(t)["other:latest"]
	s.whole(t, "/api/generate", `{"model":"other","keep_alive":0.1}`)
	gone(t, other)
	if c := s.children(t); len(c) != 0 {
		t.Errorf("loaded: %v", c)
	}

	// Unloading frees all memory.
	before := rss(t, s.Process.Pid)
	s.whole(t, "/api/generate", fmt.Sprintf(story, 5, "~"))
	demo = s.children(t)["demo:latest"]
	if out, err := ingotAt("stop", "demo"); err != nil || out != "" {
		t.Errorf("stop: %s, %v", out, err)
	}
	gone(t, demo)
	if after := rss(t, s.Process.Pid); after > before+32<<20 {
		t.Errorf("the server takes %d bytes, %d before", after, before)
	}
	if out, err := ingotAt("stop", "none"); err == nil || !strings.Contains(out, "'none:latest' not found") {
		t.Errorf("stop: %s, %v", out, err)
	}

	// The address is in use.
	out, err = ingotAt("serve")
	if err == nil || !strings.Contains(out, "listen on "+s.addr+": ingot ") ||
		!strings.Contains(out, fmt.Sprintf(", process %d (", s.Process.Pid)) ||
		!strings.Contains(out, "choose another address") {
		t.Errorf("a second server: %s, %v", out, err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	defer silent.Close()
	out, err = ingotAt("serve", "--host", silent.Addr().String())
	if err == nil || !strings.Contains(out, fmt.Sprintf("process %d (", os.Getpid())) {
		t.Errorf("an address that is taken: %s, %v", out, err)
	}

	// SIGTERM lets a response finish.
	response := s.post(t, "/api/generate", fmt.Sprintf(story, 200, "~"))
	defer response.Body.Close()
	demo = s.children(t)["demo:latest"]
	_ = s.Process.Signal(syscall.SIGTERM)
	if last := lastLine(t, response.Body); last["done"] != true {
		t.Errorf("the response ends with %v", last)
	}
	if err := s.Wait(); err != nil {
		t.Errorf("the server: %v\n%s", err, s.errs)
	}
	gone(t, demo)
	s.checkClean(t)
	if out, err := ingotAt("ps"); err == nil || !strings.Contains(out, "no server at http://"+s.addr) ||
		strings.Count(out, "\n") != 1 {
		t.Errorf("without a server: %s, %v", out, err)
	}
}
