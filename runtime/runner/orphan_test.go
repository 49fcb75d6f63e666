//go:build unix

package runner

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ingotml/ingot/runtime"
)

// A child that hangs in the engine kills itself soon after its input has ended, even if the system does not.
func TestStuck(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"=stuck")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer late.Stop()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "stuck\n" {
		t.Fatalf("%q, %v", line, err)
	}
	in.Close()
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !endedBy(exit.ProcessState, "SIGKILL") {
		t.Errorf("it ends with %v, want its own SIGKILL", err)
	}
}

// A child whose parent is killed ends.
func TestParentKilled(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"=parent")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || !alive(pid) {
		t.Fatalf("the child is %q, %v", line, err)
	}
	_ = cmd.Process.Kill()
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	for deadline := time.Now().Add(10 * time.Second); alive(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the child outlives its parent")
		}
	}
}

// A stopped child is killed, whatever its requests wait for: its load, a response, or the pipe to be read. One that
// computes for longer is not.
func TestStopped(t *testing.T) {
	for name, long := range map[string]int{"asked": 1, "with a long prompt": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options("child")
			o.interval = 100 * time.Millisecond // 2 s without a sign are enough
			r, err := Start(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.Close() })
			time.Sleep(3 * time.Second) // longer than it may be silent
			if err := r.Err(); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(r.PID(), syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			request := runtime.Request{Prompt: make([]int32, long), MaxTokens: 1}
			_, _, err = collect(t.Context(), r, request)
			if !errors.Is(err, ErrDied) || !errors.Is(err, runtime.ErrSilent) {
				t.Errorf("the request ends with %v", err)
			}
		})
	}
}
