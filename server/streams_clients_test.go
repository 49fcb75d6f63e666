package server_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/server/servertest"
)

// keptAlive lets the model go on when the client has got some keep-alives: after the first ones with the prompt, and
// after each further one with the output.
type keptAlive struct {
	http.ResponseWriter
	f      *servertest.Fixture
	writes atomic.Int32
}

func (k *keptAlive) Unwrap() http.ResponseWriter { return k.ResponseWriter }

func (k *keptAlive) Write(p []byte) (int, error) {
	n, err := k.ResponseWriter.Write(p)
	if k.writes.Add(1) > 4 {
		select { // at most one of them is waited for
		case k.f.Prefill <- struct{}{}:
		case k.f.Wait <- struct{}{}:
		default:
		}
	}
	return n, err
}

// TestSlowStreams tests the official clients, which testdata/clients/setup.sh installs, with a server that sends
// keep-alives of all kinds.
func TestSlowStreams(t *testing.T) {
	python := filepath.Join(servertest.Root(t), ".cache", "clients-venv", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		runtest.Clients.Need(t, errors.New("the clients are missing: run testdata/clients/setup.sh"))
	}
	f := serve(t, nil)
	f.SetSilence(time.Millisecond)
	f.Says, f.Prefill, f.Wait = mixedOutput, make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.ServeHTTP(&keptAlive{ResponseWriter: w, f: f.Fixture}, r)
	}))
	defer s.Close()
	test := filepath.Join(servertest.Root(t), "testdata", "clients", "slow_streams.py")
	c := exec.CommandContext(t.Context(), python, test)
	c.Env = []string{"INGOT_URL=" + s.URL, "HOME=" + t.TempDir(), "NO_PROXY=*", "PYTHONDONTWRITEBYTECODE=1"}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
