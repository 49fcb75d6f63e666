package ranks_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/models/shard"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/runtime/processor"
)

// transport starts the ranks of a job as processes that it connects.
type transport struct {
	name  string
	start func(t *testing.T, m machines, j job, size int) *processes
}

// processes are the ranks of a group.
type processes struct {
	dir    string        // of the results
	stages bool          // they are a pipeline
	ended  chan error    // one error or nil for each process that this one has started
	count  int           // of those
	log    *lockedBuffer // what they print
}

// Processes on different machines, network namespaces, that the ring, the tunnelled ring and MPI connect compute the
// logits of one rank, and the same tokens. A long run does so with dense models, experts, latent attention and gated
// delta nets, plain and packed, divided by tensors and by layers, on 2 and 4 ranks.
func TestTransports(t *testing.T) {
	e := mlxtest.Open(t)
	models := runtest.Pick([]string{"qwen3_5-default"},
		[]string{"demo", "qwen3_moe-default", "deepseek_v3-published", "qwen3_5-default"})
	precisions := runtest.Pick([]recipe.Precision{{}}, []recipe.Precision{{}, {Type: quantize.Int4.WithGroup(32)}})
	sizes := runtest.Pick([]int{2}, []int{2, 4})
	m := newMachines(t, slices.Max(sizes))
	for _, model := range models {
		prompt := modeltest.Golden[int32](t, model, "tokens")
		for _, p := range precisions {
			s, entry := converttest.PackAs(t, modeltest.Dir(model), "demo", p)
			j := job{Store: s.Root(), Image: entry.Digest, Prompt: prompt[:min(16, len(prompt))]}
			one, err := compute(t.Context(), e, nil, s, j)
			if err != nil {
				t.Fatal(err)
			}
			j.Greedy, j.Drawn = one.Greedy, one.Drawn
			for _, size := range sizes {
				divisions := []shard.Stages{nil}
				if stages := evenStages(t, processor.Files{Store: s, Image: entry.Image}, size); stages != nil && runtest.Long() {
					divisions = append(divisions, stages)
				}
				for _, j.Stages = range divisions {
					for _, by := range []transport{{"ring", startRing}, {"tunnelled ring", startTunnelled}, {"MPI", startMPI}} {
						name := fmt.Sprintf("%s %v over %s, %d ranks, layers %v", model, p.Type, by.name, size, j.Stages)
						limit := cmp.Or(ranksLimits[model], 1e-5)
						t.Run(name, func(t *testing.T) { check(t, m, by.start(t, m, own(t, j), size), size, one, limit) })
					}
				}
			}
		}
	}
}

// evenStages divides the layers of a model evenly; nil: there are too few.
func evenStages(t *testing.T, f processor.Files, size int) shard.Stages {
	t.Helper()
	config, err := f.Config()
	if err != nil {
		t.Fatal(err)
	}
	even := func(n int) []float64 { return slices.Repeat([]float64{1}, n) }
	s, err := shard.Spread(config, even(int(config.Facts().Layers)), 0, even(size))
	if err != nil {
		return nil
	}
	return s
}

// own returns the job with a folder of its own for the results.
func own(t *testing.T, j job) job {
	j.Dir = t.TempDir()
	return j
}

// ranksLimits are the limits of models whose recurrent state accumulates float32 rounding. Even on one rank, the logits
// of this one differ from those of transformers by 1.5e-5 standard deviations.
var ranksLimits = map[string]float64{"qwen3_5-default": 3e-5}

// check waits for the results of all ranks and compares them with one rank's. Logits may differ by limit standard
// deviations.
func check(t *testing.T, m machines, p *processes, size int, one computed, limit float64) {
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
	if len(all[0].Logits) != len(one.Logits) || !(worst < limit*deviation) {
		t.Errorf("%d logits differ by up to %.3g standard deviations from the %d of one rank", len(all[0].Logits),
			worst/deviation, len(one.Logits))
	}
	spaces := map[string]bool{}
	for rank, r := range all {
		spaces[r.Space] = true
		if rank > 0 && p.stages { // rank 0 alone has the results of a pipeline
			continue
		}
		if r.Sum != all[0].Sum {
			t.Errorf("rank %d has other logits than rank 0", rank)
		}
		if !slices.Equal(r.Greedy, one.Greedy) || !slices.Equal(r.Drawn, one.Drawn) {
			t.Errorf("rank %d continues %v and draws %v, one rank %v and %v", rank, r.Greedy, r.Drawn, one.Greedy, one.Drawn)
		}
	}
	if m.names != "" && len(spaces) != size {
		t.Errorf("%d ranks are in the network namespaces %v", size, spaces)
	}
	if p.stages && all[0].Sum != one.Sum {
		t.Error("the logits of a pipeline have other bits than those of one rank")
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
		if err := <-p.ended; err != nil {
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
	return &processes{dir: j.Dir, stages: j.Stages != nil, ended: make(chan error, 8), log: new(lockedBuffer)}
}

// startRing connects the ranks as mlx.launch does.
func startRing(t *testing.T, m machines, j job, size int) *processes {
	t.Helper()
	file := filepath.Join(j.Dir, "hosts.json")
	if err := os.WriteFile(file, m.ring(t, size), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newProcesses(j)
	j.Backend = "ring"
	for rank := range size {
		c := m.command(rank, program(t))
		c.Env = append(j.environ(), "MLX_HOSTFILE="+file, fmt.Sprint("MLX_RANK=", rank))
		p.begin(t, c)
	}
	return p
}

// startMPI has mpirun start the ranks.
func startMPI(t *testing.T, m machines, j job, size int) *processes {
	t.Helper()
	mpirun, library, missing := runtest.FindMPI()
	runtest.MPI.Need(t, missing)
	p := newProcesses(j)
	j.Backend = "mpi"
	args := append([]string{"-n", strconv.Itoa(size), "--bind-to", "none"}, m.mpirun(t, j.Dir, size)...)
	c := m.command(0, mpirun, append(args, program(t))...)
	c.Env = append(j.environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "MLX_MPI_LIBNAME="+library)
	p.begin(t, c)
	return p
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
