package cmd_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/internal/loopback"
)

// ringHosts writes the file of a ring of ranks on free ports of the loopback interface.
func ringHosts(t *testing.T, size int) string {
	t.Helper()
	ports, err := loopback.ReserveAll(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ports.Close)
	file := filepath.Join(t.TempDir(), "hosts.json")
	if err := os.WriteFile(file, ports.Hosts(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// follower is the process of a rank other than 0.
type follower struct {
	*exec.Cmd
	errs  *lockedBuffer
	ended chan error
}

// serveRing serves "demo" with ranks that a ring of the engine connects, as mlx.launch starts them, and waits until it
// is loaded.
func serveRing(t *testing.T, home string, size int, args ...string) (*served, []*follower) {
	t.Helper()
	hosts := ringHosts(t, size)
	args = append([]string{"serve", "demo", "--distributed", "--host", "127.0.0.1:0"}, args...)
	var followers []*follower
	for rank := 1; rank < size; rank++ {
		f := &follower{command(home, args...), &lockedBuffer{}, make(chan error, 1)}
		f.Env = append(f.Env, "MLX_HOSTFILE="+hosts, fmt.Sprint("MLX_RANK=", rank))
		f.Stderr = f.errs
		if err := f.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { f.ended <- f.Wait() }()
		t.Cleanup(func() { _ = f.Process.Kill() })
		followers = append(followers, f)
	}
	c := command(home, args...)
	c.Env = append(c.Env, "MLX_HOSTFILE="+hosts, "MLX_RANK=0")
	s := serveCommand(t, home, c)
	for deadline := time.Now().Add(time.Minute); !strings.Contains(s.errs.String(), "runs on"); {
		if time.Sleep(20 * time.Millisecond); time.Now().After(deadline) {
			t.Fatalf("the ranks do not load the model: %s\n%s", s.errs, followers[0].errs)
		}
	}
	return s, followers
}

// responses sends the requests of several clients at once and returns the texts of their responses.
func (s *served) responses(t *testing.T, requests [][2]string) []string {
	t.Helper()
	texts := make([]string, len(requests))
	var all sync.WaitGroup
	for i, r := range requests {
		all.Go(func() {
			response, err := http.Post("http://"+s.addr+r[0], "application/json", strings.NewReader(r[1]))
			if err != nil {
				texts[i] = err.Error()
				return
			}
			defer response.Body.Close()
			b, err := io.ReadAll(response.Body)
			var v struct {
				Response string
				Choices  []struct {
					Text    string
					Message struct{ Content string }
				}
			}
			if err != nil || response.StatusCode != http.StatusOK || json.Unmarshal(b, &v) != nil {
				texts[i] = fmt.Sprintf("%s: %s, %v", response.Status, b, err)
				return
			}
			texts[i] = v.Response
			for _, c := range v.Choices {
				texts[i] += c.Text + c.Message.Content
			}
		})
	}
	all.Wait()
	return texts
}

// Processes that a ring connects serve a model with the texts of one process: greedy and seeded, several at once,
// after hits of the prefix cache, with drafts, a schema and cancellations.
func TestDistributed(t *testing.T) {
	one := startServer(t, nil, "--float32")
	s, followers := serveRing(t, one.home, 2, "--float32")
	var requests [][2]string
	add := func(path, format string, args ...any) {
		requests = append(requests, [2]string{path, fmt.Sprintf(format, args...)})
	}
	for i, text := range []string{"Once there was", "The ship sailed", "In the morning"} {
		add("/v1/completions", `{"model":"demo","prompt":%q,"max_tokens":24,"temperature":0}`, text)
		add("/v1/completions", `{"model":"demo","prompt":%q,"max_tokens":24,"temperature":0.9,"seed":%d}`, text, i)
		add("/v1/chat/completions",
			`{"model":"demo","messages":[{"role":"user","content":%q}],"max_tokens":24,"temperature":0.8,"seed":7}`, text)
		add("/api/generate",
			`{"model":"demo","prompt":%q,"stream":false,"options":{"num_predict":32,"temperature":0,"draft_tokens":4}}`, text)
	}
	add("/v1/chat/completions", `{"model":"demo","messages":[{"role":"user","content":"A boy"}],"max_tokens":60,
		"temperature":0,"response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":{
		"type":"object","properties":{"age":{"type":"integer"},"glad":{"type":"boolean"}},
		"required":["age","glad"],"additionalProperties":false}}}}`)
	want := one.responses(t, requests)
	for range 2 { // the second time, prompts are in the prefix cache
		got := s.responses(t, requests)
		for i := range requests {
			if got[i] != want[i] || len(got[i]) < 5 {
				t.Errorf("%s\n%q, one process %q", requests[i][1], got[i], want[i])
			}
		}
		hanging := s.post(t, "/api/generate", `{"model":"demo","prompt":"A long","options":{"num_predict":400}}`)
		_, _ = io.ReadFull(hanging.Body, make([]byte, 100))
		hanging.Body.Close() // cancels it
	}
	usage := fmt.Sprint(s.whole(t, "/v1/completions", requests[0][1])["usage"])
	if !strings.Contains(usage, "cached_tokens") || strings.Contains(usage, "cached_tokens:0") {
		t.Errorf("a repeated prompt was not found in the prefix cache: %s", usage)
	}
	if out := ingot(t, s.home, "ps", "-v", "--host", s.addr); !strings.Contains(out, "2: ") {
		t.Errorf("ps -v does not show the ranks: %s", out)
	}
	metrics, err := http.Get("http://" + s.addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer metrics.Body.Close()
	want1 := []byte(`ingot_rank_weights_bytes{model="demo:latest",rank="1"`)
	if b, err := io.ReadAll(metrics.Body); err != nil || !bytes.Contains(b, want1) {
		t.Errorf("the metrics do not show the ranks: %v", err)
	}
	// A model that is not divided runs beside it. When the server stops, so do the ranks.
	same := [][2]string{{"/v1/completions", strings.Replace(requests[0][1], "demo", "other", 1)}}
	if got := s.responses(t, same); got[0] != want[0] {
		t.Errorf("a model that is not divided: %q, want %q", got[0], want[0])
	}
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-followers[0].ended:
		if err != nil {
			t.Errorf("the rank ended with %v: %s", err, followers[0].errs)
		}
	case <-time.After(20 * time.Second):
		t.Errorf("the rank goes on: %s", followers[0].errs)
	}
	s.checkClean(t)
	if !runtest.Long() {
		return
	}
	for _, size := range []int{2, 4} {
		s, _ := serveRing(t, one.home, size, "--float32", "--parallel", "pipeline")
		for range 2 {
			for i, got := range s.responses(t, requests) {
				if got != want[i] {
					t.Errorf("a pipeline of %d ranks: %s\n%q, one process %q", size, requests[i][1], got, want[i])
				}
			}
		}
		_ = s.Process.Signal(syscall.SIGTERM)
		s.checkClean(t)
	}
}

// When a rank is killed or stops, running requests and later ones end within 10 s with an error that says what to do,
// and other models go on. The next group generates the same tokens. A long run does so at 20 random moments each.
func TestDistributedFailure(t *testing.T) {
	needEngine(t)
	home := filepath.Join(t.TempDir(), "store")
	for _, name := range []string{"demo", "other"} {
		ingot(t, home, "create", name, filepath.Join("..", "testdata", "models", "demo"))
	}
	var first string
	for name, signal := range map[string]os.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		for round := range runtest.Pick(1, 20) {
			t.Run(fmt.Sprint(name, " ", round), func(t *testing.T) {
				s, followers := serveRing(t, home, 2)
				short := `{"model":"demo","prompt":"C","max_tokens":9,"temperature":0}`
				text := s.responses(t, [][2]string{{"/v1/completions", short}})[0]
				if first = cmp.Or(first, text); text != first {
					t.Errorf("this group says %q, the first one %q", text, first)
				}
				s.loseRank(t, followers[0], signal, time.Duration(rand.IntN(500))*time.Millisecond)
			})
		}
	}
}

// loseRank sends a signal to a rank some time after two requests have begun.
func (s *served) loseRank(t *testing.T, f *follower, signal os.Signal, after time.Duration) {
	t.Helper()
	body := `{"model":"demo","prompt":"A","options":{"num_predict":480,"temperature":0},"raw":true}`
	ended := make(chan map[string]any, 2)
	for range cap(ended) {
		response := s.post(t, "/api/generate", body)
		go func() {
			defer response.Body.Close()
			var last map[string]any
			for d := json.NewDecoder(response.Body); d.Decode(&last) == nil; {
				continue
			}
			ended <- last
		}()
	}
	time.Sleep(after)
	begun := time.Now()
	if err := f.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	for range cap(ended) {
		select {
		case last := <-ended:
			why := fmt.Sprint(last["error"])
			if last["done"] != true && !strings.Contains(why, "group of ranks has ended") {
				t.Errorf("the request ended with %v", last)
			}
		case <-time.After(10*time.Second - time.Since(begun)):
			t.Fatalf("a request goes on after 10 s: %s", s.errs)
		}
	}
	t.Logf("the signal came after %v, the requests ended %v later", after, time.Since(begun).Round(10*time.Millisecond))
	for advised := false; !advised; time.Sleep(50 * time.Millisecond) {
		sent := time.Now()
		response := s.post(t, "/v1/completions", `{"model":"demo","prompt":"B","max_tokens":4}`)
		b, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusServiceUnavailable || !bytes.Contains(b, []byte("has ended")) ||
			time.Since(sent) > 10*time.Second {
			t.Fatalf("a later request: %s %s, %v, after %v", response.Status, b, err, time.Since(sent))
		}
		advised = bytes.Contains(b, []byte("start them again")) // once the model's process has ended
	}
	if last := s.whole(t, "/v1/completions", `{"model":"other","prompt":"B","max_tokens":4}`); last["choices"] == nil {
		t.Errorf("another model: %v", last)
	}
}
