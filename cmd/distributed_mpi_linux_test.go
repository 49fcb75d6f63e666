package cmd_test

import (
	"cmp"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ingotml/ingot/limits/runtest"
)

// Processes that mpirun starts serve a model with the texts of one process, and end with the server.
func TestDistributedMPI(t *testing.T) {
	program, library, missing := runtest.FindMPI()
	runtest.MPI.Need(t, missing)
	one := startServer(t, nil, "--float32")
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
	var requests [][2]string
	for i, text := range []string{"Once there was", "The ship sailed", "In the morning"} {
		for _, temperature := range []float64{0, 0.9} {
			requests = append(requests, [2]string{"/v1/completions", fmt.Sprintf(
				`{"model":"demo","prompt":%q,"max_tokens":24,"temperature":%g,"seed":%d}`, text, temperature, i)})
		}
	}
	got, want := s.answers(t, requests), one.answers(t, requests)
	for i := range requests {
		if got[i] != want[i] || len(got[i]) < 5 {
			t.Errorf("%s\n%q, one process %q", requests[i][1], got[i], want[i])
		}
	}
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	select {
	case <-ended: // its exit code says that it was stopped
	case <-time.After(30 * time.Second):
		t.Errorf("mpirun goes on: %s", cmp.Or(s.errs.String(), "no output"))
	}
	s.checkClean(t)
}
