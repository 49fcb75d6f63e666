package cmd_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/registry/registrytest"
	"github.com/opencontainers/go-digest"
)

// TestRandomFaults lets faults happen at random moments of push, pull, cp and create from a hub: 20 of each in a long
// run, and one of each kind otherwise. A command survives all but a kill, and then it is run again. The digest is that
// of a run without faults, and the store has exactly the same files: no partial data, no records of uploads. The
// registry holds no upload that the client could have canceled.
//
// The seed is in the output of a failure. INGOT_TEST_SEED repeats it, up to the order of parallel requests.
func TestRandomFaults(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("INGOT_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("INGOT_TEST_SEED: %v", err)
		}
	}
	for i, name := range []string{"push", "pull", "cp", "create"} {
		t.Run(name, func(t *testing.T) {
			t.Logf("seed %d", seed)
			f := &faulty{random: rand.New(rand.NewPCG(seed, uint64(i)))}
			moves[name](t, f).suffer(t, f)
		})
	}
}

// move is a command that moves a model.
type move struct {
	args []string
	env  []string
	home string             // the store; "": a new one for each attempt
	to   *registrytest.Peer // is emptied before each attempt; may be nil
	repo string             // in to
}

var moves = map[string]func(t *testing.T, f *faulty) move{
	"push": func(t *testing.T, f *faulty) move {
		p, home := f.newFaultyPeer(t), filepath.Join(t.TempDir(), "source")
		name := p.Host() + "/team/model:v1"
		makeModel(t, home, name, faultSizes)
		return move{args: []string{"push", name, "--chunk-size", "4MiB"}, home: home, to: p, repo: "team/model"}
	},
	"pull": func(t *testing.T, f *faulty) move {
		p, home := f.newFaultyPeer(t), filepath.Join(t.TempDir(), "source")
		name := p.Host() + "/team/model:v1"
		makeModel(t, home, name, faultSizes)
		ingot(t, home, "push", name)
		return move{args: []string{"pull", name}}
	},
	"cp": func(t *testing.T, f *faulty) move {
		from, to, home := f.newFaultyPeer(t), f.newFaultyPeer(t), filepath.Join(t.TempDir(), "source")
		name := from.Host() + "/team/model:v1"
		makeModel(t, home, name, faultSizes)
		ingot(t, home, "push", name)
		return move{args: []string{"cp", name, to.Host() + "/other/model:v1"}, to: to, repo: "other/model"}
	},
	"create": func(t *testing.T, f *faulty) move {
		h := f.newFaultyHub(t)
		if _, err := h.AddFolder("tiny/model", filepath.Join("..", "testdata", "models", "demo")); err != nil {
			t.Fatal(err)
		}
		return move{args: []string{"create", "m", "hf.co/tiny/model", "-q", "int4"}, env: hubEnv(h, t.TempDir(), "")}
	},
}

var faultSizes = killSizes{large: 18 << 20, tensor: 1 << 20, tensors: 4, small: 6}

// attempt is one try to move a model, of one or several runs.
type attempt struct {
	move
	f     *faulty
	home  string
	temp  string
	trace []string // what happened
}

func (m move) attempt(t *testing.T, f *faulty) *attempt {
	a := &attempt{move: m, f: f, home: m.home, temp: t.TempDir()}
	if a.home == "" {
		a.home = filepath.Join(t.TempDir(), "store")
	}
	if m.to != nil {
		m.to.Mu.Lock()
		clear(m.to.Repos)
		clear(m.to.Uploads)
		m.to.Mu.Unlock()
	}
	return a
}

// run runs the command once. It reports whether it was killed.
func (a *attempt) run(t *testing.T, plan []planned) (out string, ticks int, happened []fault, killed bool) {
	t.Helper()
	c := command(a.home, a.args...)
	c.Env = append(append(c.Env, a.env...), "TMPDIR="+a.temp)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	began := make(chan struct{})
	var hit atomic.Bool
	a.f.begin(plan, func() {
		<-began
		hit.Store(true)
		_ = c.Process.Kill()
	})
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	close(began)
	err := c.Wait()
	ticks, happened, told := a.f.end()
	a.trace = append(a.trace, fmt.Sprintf("%v of %v", happened, plan))
	if hit.Load() && err != nil {
		if a.to != nil {
			a.to.Server.CloseClientConnections() // requests that the process sent, and nobody has read
		}
		return "", ticks, happened, true
	}
	if err != nil {
		t.Fatalf("%s: %v\nafter %s\n%s", strings.Join(a.args, " "), err, strings.Join(a.trace, "; "), stderr.String())
	}
	for _, s := range told {
		if s.open() {
			t.Errorf("after %s: the upload %s is open", strings.Join(a.trace, "; "), s.id)
		}
	}
	return stdout.String(), ticks, happened, false
}

// suffer runs the command with faults until all have happened.
func (m move) suffer(t *testing.T, f *faulty) {
	whole := m.attempt(t, f)
	want, ticks, _, _ := whole.run(t, nil)
	files := below(t, whole.home)
	var left []fault
	for i := range runtest.Pick(len(allFaults), 20) {
		left = append(left, allFaults[i%len(allFaults)])
	}
	f.random.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	for attempts := 0; len(left) > 0; attempts++ {
		if attempts == 100 {
			t.Fatalf("%v do not happen", left)
		}
		a := m.attempt(t, f)
		for {
			out, _, happened, killed := a.run(t, f.draw(left, ticks))
			left = without(left, happened)
			if killed {
				continue
			}
			what := strings.Join(a.trace, "; ")
			if out != want {
				t.Errorf("after %s: it prints %q, want %q", what, out, want)
			}
			if more, less := without(below(t, a.home), files), without(files, below(t, a.home)); len(more)+len(less) > 0 {
				t.Errorf("after %s: the store also has %q and lacks %q", what, more, less)
			}
			if got := below(t, a.temp); len(got) > 0 {
				t.Errorf("after %s: temporary files %q", what, got)
			}
			checkBlobs(t, what, a.home)
			if m.to != nil {
				_, d, at := strings.Cut(out, "@")
				if !at {
					d = out
				}
				m.to.Check(m.repo, "v1", digest.Digest(strings.TrimSpace(d)))
			}
			t.Log(what)
			break
		}
	}
}

// below lists the files of a folder, but not the notes of a store's holders, which the next one to wait removes.
func below(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if name, _ := filepath.Rel(dir, path); filepath.Dir(name) != "holders" {
			files = append(files, name)
		}
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return files
}
