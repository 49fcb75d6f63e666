package ranks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/child"
	"github.com/ingotml/ingot/convert/recipe"
	"github.com/ingotml/ingot/limits/runtest"
	"github.com/ingotml/ingot/loopback"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/runtime/runtimetest"
	"github.com/ingotml/ingot/worker"
	"github.com/ingotml/ingot/worker/shards"
	"github.com/ingotml/ingot/worker/tunnel"
)

// transport starts the ranks of a job as processes that it connects.
type transport struct {
	name  string
	start func(t *testing.T, j job, size int) *processes
}

// processes are the ranks of a group.
type processes struct {
	dir   string        // of the results
	ended chan error    // one error or nil for each process that this one has started
	count int           // of those
	rude  bool          // they do not take leave of the launcher, which then fails
	log   *lockedBuffer // what they print
}

// Processes that the ring, the tunnelled ring and MPI connect compute the logits of one rank, and the same tokens. A
// long run does so with dense models, experts, latent attention and gated delta nets, plain and packed, on 2 and 4
// ranks.
func TestTransports(t *testing.T) {
	e := mlxtest.Open(t)
	models := runtest.Pick([]string{"qwen3_5-default"},
		[]string{"demo", "qwen3_moe-default", "deepseek_v3-published", "qwen3_5-default"})
	precisions := runtest.Pick([]recipe.Precision{{}}, []recipe.Precision{{}, {Type: quantize.Int4.WithGroup(32)}})
	for _, model := range models {
		prompt := modeltest.Golden[int32](t, model, "tokens")
		prompt = prompt[:min(16, len(prompt))]
		for _, p := range precisions {
			s, entry := runtimetest.PackAs(t, modeltest.Dir(model), "demo", p)
			j := job{Store: s.Root(), Image: entry.Digest, Prompt: prompt}
			one, err := compute(t.Context(), e, nil, s, entry.Digest, prompt)
			if err != nil {
				t.Fatal(err)
			}
			for _, by := range []transport{{"ring", startRing}, {"tunnelled ring", startTunnelled}, {"MPI", startMPI}} {
				for _, size := range runtest.Pick([]int{2}, []int{2, 4}) {
					name := fmt.Sprintf("%s %v over %s, %d ranks", model, p.Type, by.name, size)
					t.Run(name, func(t *testing.T) { check(t, by.start(t, own(t, j), size), size, one) })
				}
			}
		}
	}
}

// own returns the job with a folder of its own for the results.
func own(t *testing.T, j job) job {
	j.Dir = t.TempDir()
	return j
}

// check waits for the results of all ranks and compares them with one rank's.
func check(t *testing.T, p *processes, size int, one computed) {
	t.Helper()
	all := p.results(t, size)
	var sum, squares, worst float64
	for i, want := range one.Logits {
		sum, squares = sum+float64(want), squares+float64(want)*float64(want)
		if d := math.Abs(float64(all[0].Logits[i]) - float64(want)); !(d <= worst) { // also true for NaN
			worst = d
		}
	}
	n := float64(len(one.Logits))
	deviation := math.Sqrt(squares/n - sum/n*sum/n)
	t.Logf("largest difference %.2g standard deviations", worst/deviation)
	if len(all[0].Logits) != len(one.Logits) || !(worst < 1e-5*deviation) {
		t.Errorf("%d logits differ by up to %.3g standard deviations from the %d of one rank", len(all[0].Logits),
			worst/deviation, len(one.Logits))
	}
	for rank, r := range all {
		if r.Sum != all[0].Sum {
			t.Errorf("rank %d has other logits than rank 0", rank)
		}
		if !slices.Equal(r.Greedy, one.Greedy) || !slices.Equal(r.Drawn, one.Drawn) {
			t.Errorf("rank %d continues %v and draws %v, one rank %v and %v", rank, r.Greedy, r.Drawn, one.Greedy, one.Drawn)
		}
	}
}

// results returns what the ranks have computed, after they have ended.
func (p *processes) results(t *testing.T, size int) []computed {
	t.Helper()
	all := make([]computed, size)
	deadline := time.After(4 * time.Minute)
	for rank := 0; rank < size; {
		b, err := os.ReadFile(filepath.Join(p.dir, strconv.Itoa(rank)))
		if err == nil {
			if err := json.Unmarshal(b, &all[rank]); err != nil {
				t.Fatal(err)
			}
			rank++
			continue
		}
		select {
		case err := <-p.ended:
			p.ended <- err
			if _, err := os.Stat(filepath.Join(p.dir, strconv.Itoa(rank))); err != nil {
				t.Fatalf("a rank has ended without a result: %v\n%s", err, p.log)
			}
		case <-deadline:
			t.Fatalf("rank %d computes nothing\n%s", rank, p.log)
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := os.WriteFile(filepath.Join(p.dir, endFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range p.count {
		if err := <-p.ended; err != nil && !p.rude {
			t.Errorf("a rank ended with %v\n%s", err, p.log)
		}
	}
	return all
}

// begin starts a command, which ends with the test at the latest.
func (p *processes) begin(t *testing.T, c *exec.Cmd) {
	t.Helper()
	c.Stdout, c.Stderr = p.log, p.log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	p.count++
	done := make(chan struct{})
	go func() { defer close(done); p.ended <- c.Wait() }()
	t.Cleanup(func() { _ = c.Process.Kill(); <-done })
}

func newProcesses(j job) *processes {
	return &processes{dir: j.Dir, ended: make(chan error, 8), log: new(lockedBuffer)}
}

// startRing connects the ranks as mlx.launch does.
func startRing(t *testing.T, j job, size int) *processes {
	t.Helper()
	ports, err := loopback.ReserveAll(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ports.Close)
	file := filepath.Join(j.Dir, "hosts.json")
	if err := os.WriteFile(file, ports.Hosts(), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newProcesses(j)
	j.Backend = "ring"
	for rank := range size {
		c := exec.Command(os.Args[0])
		c.Env = append(j.environ(), "MLX_HOSTFILE="+file, fmt.Sprint("MLX_RANK=", rank))
		p.begin(t, c)
	}
	return p
}

// startMPI has mpirun start the ranks.
func startMPI(t *testing.T, j job, size int) *processes {
	t.Helper()
	program, library, missing := runtest.FindMPI()
	runtest.MPI.Need(t, missing)
	p := newProcesses(j)
	p.rude = true // nothing calls MPI_Finalize
	j.Backend = "mpi"
	c := exec.Command(program, "-n", strconv.Itoa(size), "--oversubscribe", "--bind-to", "none", os.Args[0])
	c.Env = append(j.environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "MLX_MPI_LIBNAME="+library)
	p.begin(t, c)
	return p
}

// startTunnelled has workers start all ranks but the first, which fetch their parts from it.
func startTunnelled(t *testing.T, j job, size int) *processes {
	t.Helper()
	p := newProcesses(j)
	j.Backend = "ring"
	token, err := tunnel.NewToken(strings.Repeat("t", tunnel.MinToken))
	if err != nil {
		t.Fatal(err)
	}
	o := worker.FormOptions{
		Self: tunnel.Self{Token: token, Versions: tunnel.Versions{Program: "1", Engine: "2"}}, Name: "demo", Image: j.Image,
		Log: func(format string, args ...any) { fmt.Fprintf(p.log, format+"\n", args...) },
	}
	if o.Store, err = store.OpenExisting(j.Store); err != nil {
		t.Fatal(err)
	}
	for range size - 1 {
		o.Workers = append(o.Workers, startWorker(t, o, j))
	}
	g, err := worker.Form(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.log)
	}
	t.Cleanup(g.Close)
	j.Ring = &g.Ring
	c := exec.Command(os.Args[0])
	c.Env = j.environ()
	p.begin(t, c)
	t.Cleanup(func() {
		for _, c := range g.Conns {
			c.Close()
		}
	})
	return p
}

// startWorker starts a worker with an empty store and returns its address.
func startWorker(t *testing.T, group worker.FormOptions, j job) string {
	t.Helper()
	own, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder, err := shards.Open(own)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- worker.Serve(ctx, l, worker.ServeOptions{
			Self: group.Self, Folder: folder, About: worker.About{Host: "a"}, Log: group.Log,
			Command: func(r worker.Rank) *child.Cmd {
				j.Ring, j.Store = &r.Ring, r.Shard.Store.Root()
				c := child.Command(context.Background(), j.environ(), os.Args[0])
				c.Stderr = os.Stderr
				return c
			},
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
