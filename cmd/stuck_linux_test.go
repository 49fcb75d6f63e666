package cmd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStuckChildren checks that models' processes end with a killed server, even if one hangs in the engine and one is
// stopped. The server's folders are relative paths, and models' processes have another working folder.
func TestStuckChildren(t *testing.T) {
	needEngine(t)
	parent := t.TempDir()
	home := filepath.Join(parent, "store")
	for _, name := range []string{"demo", "other"} {
		ingot(t, home, "create", name, filepath.Join("..", "testdata", "models", "demo"))
	}
	t.Chdir(parent)
	s := serveStore(t, "store", []string{"INGOT_TEST_FAULT=stuck=FAULT"}, "--cache-dir", "states")
	s.whole(t, "/api/generate", `{"model":"other"}`)
	response := s.post(t, "/api/generate", fmt.Sprintf(story, 400, "FAULT"))
	defer response.Body.Close()
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(s.errs.String(),
		"the test fault is stuck"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the model does not hang: %s", s.errs)
		}
	}
	children := s.children(t)
	demo, other := children["demo:latest"], children["other:latest"]
	for _, pid := range []int{demo, other} {
		if dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err != nil || dir != "/" {
			t.Errorf("a model's process stands in %q, %v", dir, err)
		}
	}
	if _, err := os.Stat("states"); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(other, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	_ = s.Process.Kill()
	_ = s.Wait()
	defer func() {
		for _, pid := range []int{demo, other} {
			if t.Failed() && running(pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}()
	gone(t, demo, other)
	ingot(t, home, "prune", "--yes") // removes the note that the server used an image
	s.checkClean(t)
}
