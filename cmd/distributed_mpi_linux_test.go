package cmd_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/runtest"
)

// Processes that mpirun starts serve a model with the texts of one process. They end with the server, which mpirun does
// not take for a failure.
func TestDistributedMPI(t *testing.T) {
	program, library, missing := runtest.FindMPI()
	runtest.MPI.Need(t, missing)
	one := startServer(t, nil, "--float32")
	start := func() *served {
		serve := command(one.home, "serve", "demo", "--distributed", "--float32", "--host", "127.0.0.1:0")
		mpirun := []string{program, "-n", "2", "--oversubscribe", "--bind-to", "none", serve.Path}
		serve.Args = append(mpirun, serve.Args[1:]...)
		serve.Path = program
		serve.Env = append(serve.Env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
			"MLX_MPI_LIBNAME="+library)
		s := serveCommand(t, one.home, serve)
		for deadline := time.Now().Add(time.Minute); !strings.Contains(s.errs.String(), "runs on 2 ranks"); {
			if time.Sleep(20 * time.Millisecond); time.Now().After(deadline) {
				t.Fatalf("the ranks do not load the model: %s", s.errs)
			}
		}
		return s
	}
	s := start()
	var requests [][2]string
	for i, text := range []string{"Once there was", "The ship sailed", "In the morning"} {
		for _, temperature := range []float64{0, 0.9} {
			requests = append(requests, [2]string{"/v1/completions", fmt.Sprintf(
				`{"model":"demo","prompt":%q,"max_tokens":24,"temperature":%g,"seed":%d}`, text, temperature, i)})
		}
	}
	got, want := s.responses(t, requests), one.responses(t, requests)
	for i := range requests {
		if got[i] != want[i] || len(got[i]) < 5 {
			t.Errorf("%s\n%q, one process %q", requests[i][1], got[i], want[i])
		}
	}
	if err := s.stopped(t, mpiRank(t, s.Process.Pid, 0)); err != nil {
		t.Errorf("mpirun ended with %v: %s", err, s.errs)
	}
	if runtest.Long() {
		s = start()
		if err := s.stopped(t, s.Process.Pid); err == nil {
			t.Error("mpirun takes its own end for a success")
		}
	}
}

// stopped sends SIGTERM to a process of the server, and returns how the server ended.
func (s *served) stopped(t *testing.T, pid int) error {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	select {
	case err := <-ended:
		s.checkClean(t)
		return err
	case <-time.After(30 * time.Second):
		t.Fatalf("the server goes on: %s", cmp.Or(s.errs.String(), "no output"))
		return nil
	}
}

// mpiRank returns the process of a rank that mpirun has started.
func mpiRank(t *testing.T, mpirun, rank int) int {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", mpirun))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("\x00OMPI_COMM_WORLD_RANK=%d\x00", rank)
	for _, file := range threads {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, pid := range strings.Fields(string(b)) {
			environ, err := os.ReadFile("/proc/" + pid + "/environ")
			if err == nil && bytes.Contains(environ, []byte(want)) {
				n, err := strconv.Atoi(pid)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
		}
	}
	t.Fatalf("mpirun has no process for rank %d", rank)
	return 0
}
