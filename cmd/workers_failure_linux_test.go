package cmd_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/runtest"
)

// workerGroup is a server with one worker, and what the model says.
type workerGroup struct {
	s           *served
	w           *workerProcess
	home, token string // of the worker
	want        string
}

func newWorkerGroup(t *testing.T, listen, address string, prefix ...string) *workerGroup {
	t.Helper()
	g := &workerGroup{home: filepath.Join(t.TempDir(), "worker"), token: tokenFile(t, strings.Repeat("token", 8))}
	one := startServer(t, nil)
	g.want = one.text(t, workersPrompt)
	one.Process.Kill()
	g.w = startWorker(t, g.home, g.token, listen, prefix...)
	if address == "" {
		address = g.w.addr
	}
	g.s = serveStore(t, one.home, nil, "--workers", address, "--token-file", g.token)
	if got := g.s.text(t, workersPrompt); got != g.want || got == "" {
		t.Fatalf("two machines say %q, one %q\n%s\n%s", got, g.want, g.s.errs, g.w.errs)
	}
	return g
}

// survives checks that requests end in time when cut is called after a while, and that the next group says the right
// thing after mend.
func (g *workerGroup) survives(t *testing.T, cut, mend func()) {
	t.Helper()
	ended := make(chan map[string]any, 2)
	for range cap(ended) {
		go func() {
			var last map[string]any
			response, err := http.Post("http://"+g.s.addr+"/api/generate", "application/json",
				strings.NewReader(workersEndless))
			if err == nil {
				defer response.Body.Close()
				for d := json.NewDecoder(response.Body); d.Decode(&last) == nil; {
					continue
				}
			}
			ended <- last
		}()
	}
	after := time.Duration(rand.IntN(700)) * time.Millisecond
	time.Sleep(after)
	cut()
	begun := time.Now()
	for range cap(ended) {
		select {
		case last := <-ended:
			if why, _ := last["error"].(string); last["done"] != true && why == "" {
				t.Errorf("a request ended with %v", last)
			}
		case <-time.After(10*time.Second - time.Since(begun)):
			t.Fatalf("%v after the request: it goes on after 10 s\n%s\n%s", after, g.s.errs, g.w.errs)
		}
	}
	took := time.Since(begun)
	mend()
	got := ""
	for deadline := time.Now().Add(30 * time.Second); got != g.want; time.Sleep(100 * time.Millisecond) {
		begun := time.Now()
		got = g.s.text(t, workersPrompt)
		if late := time.Since(begun) > 10*time.Second; late || !strings.HasPrefix(got, "error") && got != g.want ||
			time.Now().After(deadline) {
			t.Fatalf("%v after the request: the next group says %q, want %q, after %v\n%s\n%s", after, got, g.want,
				time.Since(begun), g.s.errs, g.w.errs)
		}
	}
	t.Logf("%v after the request: it ended %v later", after, took.Round(10*time.Millisecond))
}

// rank returns the process of the worker's rank.
func (w *workerProcess) rank(t *testing.T) (pid int) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", w.Process.Pid)) // by the one that started it
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range threads {
		if b, err := os.ReadFile(file); err == nil && len(b) > 0 {
			if _, err := fmt.Sscan(string(b), &pid); err != nil {
				t.Fatal(err)
			}
		}
	}
	if pid == 0 {
		t.Fatalf("the worker runs no rank: %s", w.errs)
	}
	return pid
}

// Whatever happens to a process of a group or to its link, at a random moment: requests end within 10 s with a response
// or an error, the next group forms, and its tokens are right. A long run tries 20 moments of each; a short one those
// that no other test has.
func TestWorkersFailure(t *testing.T) {
	t.Parallel() // it mostly waits
	needEngine(t)
	signal := func(pid int, s syscall.Signal) {
		if err := syscall.Kill(pid, s); err != nil {
			t.Error(err)
		}
	}
	t.Run("processes", func(t *testing.T) {
		g := newWorkerGroup(t, "127.0.0.1:0", "")
		again := func() { g.w = startWorker(t, g.home, g.token, g.w.addr) }
		rank0 := func() int {
			all := g.s.children(t)
			return max(all["demo:latest"], all["demo"])
		}
		nothing := func() {}
		for _, c := range []struct {
			name      string
			rounds    int
			cut, mend func()
		}{
			{"the process of rank 0 stopped", runtest.Pick(1, 20), func() { signal(rank0(), syscall.SIGSTOP) }, nothing},
			{"the process of rank 1 stopped", runtest.Pick(1, 20), func() { signal(g.w.rank(t), syscall.SIGSTOP) }, nothing},
			{"the process of rank 0 killed", runtest.Pick(0, 20), func() { signal(rank0(), syscall.SIGKILL) }, nothing},
			{"the process of rank 1 killed", runtest.Pick(0, 20), func() { signal(g.w.rank(t), syscall.SIGKILL) }, nothing},
			{"the worker killed", runtest.Pick(0, 20), func() { g.w.end() }, again},
			{
				"the worker stopped", runtest.Pick(0, 20), func() { signal(g.w.Process.Pid, syscall.SIGSTOP) },
				func() { signal(g.w.Process.Pid, syscall.SIGCONT) },
			},
		} {
			for round := range c.rounds {
				t.Run(fmt.Sprint(c.name, " ", round), func(t *testing.T) { g.survives(t, c.cut, c.mend) })
			}
		}
	})
	if !runtest.Long() {
		return
	}
	t.Run("link", func(t *testing.T) {
		name, _, there, device := namespace(t, 2)
		g := newWorkerGroup(t, ":7710", there, "ip", "netns", "exec", name)
		link := func(to string) {
			if out, err := exec.Command("ip", "link", "set", device, to).CombinedOutput(); err != nil {
				t.Errorf("%v %s", err, out)
			}
		}
		for round := range 20 {
			t.Run(fmt.Sprint(round), func(t *testing.T) {
				g.survives(t, func() { link("down") }, func() { link("up") })
			})
		}
	})
}
