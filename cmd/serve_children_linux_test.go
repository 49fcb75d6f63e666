package cmd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/runtest"
)

// children returns the processes of models by name.
func (s *served) children(t *testing.T) map[string]int {
	t.Helper()
	response, err := http.Get("http://" + s.addr + "/api/ps")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var list struct {
		Models []struct {
			Name string
			PID  int
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, m := range list.Models {
		out[m.Name] = m.PID
	}
	return out
}

// running reports whether a process exists and has not ended.
func running(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := bytes.Cut(b, []byte(") "))
	return len(after) > 0 && after[0] != 'Z'
}

// gone waits until processes have ended.
func gone(t *testing.T, pids ...int) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		left := 0
		for _, pid := range pids {
			if running(pid) {
				left = pid
			}
		}
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", left)
		}
	}
}

// checkClean checks that no temporary files are left, and no stray files in the store.
func (s *served) checkClean(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{filepath.Join(s.temp, "*"), filepath.Join(s.home, "ingest", "*"),
		filepath.Join(s.home, "*.sock")} {
		left, err := filepath.Glob(pattern)
		if err != nil || len(left) > 0 {
			t.Errorf("%s: %v, %v are left", pattern, left, err)
		}
	}
}

// rss returns the resident memory of a process in bytes.
func rss(t *testing.T, pid int) int64 {
	t.Helper()
	return memory(t, pid, "VmRSS:")
}

// peak returns the peak memory of a process in bytes.
func peak(t *testing.T, pid int) int64 {
	t.Helper()
	return memory(t, pid, "VmHWM:")
}

func memory(t *testing.T, pid int, what string) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), what)
	kib, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// TestKilledChild checks that a model's process that dies fails only its own requests.
func TestKilledChild(t *testing.T) {
	for name, c := range map[string]struct {
		fault, want string
	}{
		"killed":             {"kill=FAULT", "signal: killed, as the system does when memory runs out"},
		"segmentation fault": {"segv=FAULT", "SIGSEGV"},
		// Whichever thread allocates first ends the process, each in its own way.
		"memory limit": {"memory=FAULT", "; its last words: "},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "memory limit" && runtest.Race {
				t.Skip("here the race detector's own allocations fail, with its own exit status: make test runs this without it")
			}
			s := startServer(t, []string{"INGOT_TEST_FAULT=" + c.fault})
			s.whole(t, "/api/generate", `{"model":"other"}`)
			other := s.children(t)["other:latest"]
			responses := []*http.Response{
				s.post(t, "/api/generate", fmt.Sprintf(story, 400, "FAULT")),
				s.post(t, "/api/generate", fmt.Sprintf(story, 400, "FAULT")),
			}
			for _, a := range responses {
				last := lastLine(t, a.Body)
				a.Body.Close()
				if message, _ := last["error"].(string); !strings.Contains(message, "the model's process died") ||
					!strings.Contains(message, c.want) {
					t.Errorf("the response ends with %v, want %q", last, c.want)
				}
			}
			if last := s.whole(t, "/api/generate", fmt.Sprintf(story, 5, "~")); last["done"] != true ||
				last["eval_count"] != 5.0 {
				t.Errorf("the next answer ends with %v", last)
			}
			children := s.children(t)
			if children["other:latest"] != other || !running(other) {
				t.Errorf("the other model's process is %d, was %d", children["other:latest"], other)
			}
			_ = s.Process.Signal(syscall.SIGTERM)
			_ = s.Wait()
			gone(t, other, children["demo:latest"])
			s.checkClean(t)
		})
	}
}

// TestKilledServer checks that a killed server leaves nothing behind.
func TestKilledServer(t *testing.T) {
	s := startServer(t, nil)
	s.whole(t, "/api/generate", `{"model":"other"}`)
	response := s.post(t, "/api/generate", fmt.Sprintf(story, 400, "~"))
	defer response.Body.Close()
	children := s.children(t)
	if len(children) != 2 {
		t.Fatalf("loaded: %v", children)
	}
	_ = s.Process.Kill()
	_ = s.Wait()
	gone(t, children["other:latest"], children["demo:latest"])
	ingot(t, s.home, "prune", "--yes") // removes the note that the server used an image
	s.checkClean(t)
}
