package ranks_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/engine"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/shard"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/runtime/sample"
	"github.com/ingotml/ingot/worker"
	"github.com/ingotml/ingot/worker/shards"
	"github.com/opencontainers/go-digest"
)

// job is what a process does: it computes as a rank, or is a worker that starts a rank.
type job struct {
	Backend string       // of the engine's groups
	Ring    *worker.Ring // of a tunnelled ring; nil: the launcher's environment has the group
	Workers []string     // with which rank 0 forms a group that has a tunnelled ring
	Listen  string       // a worker's address
	Store   string
	Image   digest.Digest
	Stages  shard.Stages // of a pipeline
	Prompt  []int32
	Greedy  []int32 // tokens after the prompt, for ranks of a pipeline that have no logits
	Drawn   []int32
	Dir     string // for the results, one file for each rank
}

const envJob = "INGOT_TEST_RANK"

// The test's program is also the process of a rank.
func TestMain(m *testing.M) {
	text := os.Getenv(envJob)
	if text == "" {
		os.Exit(m.Run())
	}
	var j job
	err := json.Unmarshal([]byte(text), &j)
	switch {
	case err != nil:
	case j.Listen != "":
		err = j.work()
	case len(j.Workers) > 0:
		err = j.form(context.Background())
	default:
		err = j.run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// environ is this process's environment with the job.
func (j job) environ() []string {
	b, err := json.Marshal(j)
	if err != nil {
		panic(err)
	}
	return append(os.Environ(), envJob+"="+string(b))
}

// endFile ends the ranks when it is in the folder of the results.
const endFile = "end"

// run joins the group, computes, writes the result, and waits for the end: who leaves a ring earlier may take bytes
// along that others have not got yet.
func (j job) run(ctx context.Context) error {
	if j.Ring != nil {
		file := filepath.Join(j.Dir, fmt.Sprint("ring ", j.Ring.Rank))
		err := errors.Join(os.WriteFile(file, j.Ring.Hosts(), 0o600), os.Setenv("MLX_HOSTFILE", file),
			os.Setenv("MLX_RANK", strconv.Itoa(j.Ring.Rank)))
		if err != nil {
			return err
		}
	}
	e, err := engine.Find(engine.Options{})
	if err != nil {
		return err
	}
	thread, err := mlx.Open(e, mlx.Options{CPU: mlx.CPUOptions{Threads: 1}})
	if err != nil {
		return err
	}
	var group *mlx.Group
	err = thread.Do(ctx, func() (err error) {
		group, err = thread.Join(mlx.GroupOptions{Backend: j.Backend, Limit: 2 * time.Minute})
		return err
	})
	if err != nil {
		return err
	}
	st, err := store.OpenExisting(j.Store)
	if err != nil {
		return err
	}
	r, err := compute(ctx, thread, group, st, j)
	if err != nil {
		return err
	}
	if group.Rank() > 0 {
		r.Logits = nil // their checksum is enough
	}
	r.Space, _ = os.Readlink("/proc/self/ns/net") // empty on other systems than Linux
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	file := filepath.Join(j.Dir, strconv.Itoa(group.Rank()))
	if err := errors.Join(os.WriteFile(file+".part", b, 0o600), os.Rename(file+".part", file)); err != nil {
		return err
	}
	for range 3000 {
		if _, err := os.Stat(filepath.Join(j.Dir, endFile)); err == nil {
			return leave(ctx, thread, group, j.Backend)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("nobody ends this rank")
}

// leave ends the group in good order. MPI cannot begin again, and would end the process that tries.
func leave(ctx context.Context, t *mlx.Thread, g *mlx.Group, backend string) error {
	if err := g.Finish(); err != nil || backend != "mpi" {
		return err
	}
	err := t.Do(ctx, func() error {
		_, err := t.Join(mlx.GroupOptions{Backend: backend})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "cannot begin again") {
		return fmt.Errorf("joining a group after its end: %v", err)
	}
	return nil
}

// computed is what a rank computes. All ranks compute the same.
type computed struct {
	Logits []float32 // of all tokens of the prompt
	Sum    string    // SHA-256 of their bits
	Greedy []int32   // tokens after the prompt
	Drawn  []int32   // ditto, drawn with a seed
	Space  string    // network namespace of the process
}

// compute loads a rank's part of an image and runs it. Without a group it loads all of it. In a pipeline rank 0 has the
// results, and the others none.
func compute(ctx context.Context, t *mlx.Thread, g *mlx.Group, s *store.Store, j job) (c computed, err error) {
	image, whole := shards.Has(s, j.Image)
	if !whole {
		return c, fmt.Errorf("the store %s lacks blobs of %s", s.Root(), j.Image)
	}
	f := processor.Files{Store: s, Image: image}
	o := runtime.Options{Float32: true, Draft: runtime.DraftOptions{Off: true}, Stages: j.Stages}
	m, err := load.OpenRank(ctx, t, g, f, f.Processor, o)
	if err != nil {
		return c, err
	}
	err = m.Do(ctx, func() error {
		if j.Stages != nil && g.Rank() > 0 {
			replay(m, j.Prompt, j.Greedy)
			replay(m, j.Prompt, j.Drawn)
			return nil
		}
		seed := int64(7)
		c.Logits, c.Greedy = generate(m, j.Prompt, runtime.Sampling{})
		_, c.Drawn = generate(m, j.Prompt, runtime.Sampling{Temperature: 0.9, TopP: 0.95, Seed: &seed})
		return nil
	})
	sum := sha256.New()
	for _, v := range c.Logits {
		sum.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
	}
	c.Sum = hex.EncodeToString(sum.Sum(nil))
	return c, errors.Join(err, m.Close(nil))
}

// generated is the number of tokens after the prompt.
const generated = 10

// generate returns the logits of all tokens of the prompt and the tokens after it.
func generate(m *load.Model, prompt []int32, s runtime.Sampling) (logits []float32, tokens []int32) {
	seq := cache.NewSequence(m.Kinds)
	defer seq.Free()
	forwards := models.NewRepeater(m.Thread, m.Target)
	defer forwards.Forget()
	sampler := sample.New(s, prompt)
	next := prompt
	for range generated {
		m.Thread.Scope(func() {
			all := m.Target.Head(forwards.Forward(nn.Part{Seq: seq, Tokens: next, All: true}))
			if logits == nil {
				logits = append(logits, all.Float32s()...)
			}
			last := mlx.SliceAxis(all, 0, mlx.Range(len(next)-1, len(next)))
			drawn := sample.Start(last, []sample.Request{{Sampler: sampler, TopLogProbs: -1}})
			mlx.Eval(drawn.Arrays()...)
			next = []int32{drawn.Part(0).Read().Next}
			sampler.Add(next[0])
		})
		tokens = append(tokens, next[0])
	}
	return logits, tokens
}

// replay runs the forward passes of generate on a rank of a pipeline that has no logits.
func replay(m *load.Model, prompt, tokens []int32) {
	seq := cache.NewSequence(m.Kinds)
	defer seq.Free()
	forwards := models.NewRepeater(m.Thread, m.Target)
	defer forwards.Forget()
	next := prompt
	for i := range generated {
		m.Thread.Scope(func() {
			sent := forwards.Forward(nn.Part{Seq: seq, Tokens: next, All: true})
			mlx.Eval(append(seq.State(), sent)...)
		})
		next = tokens[i : i+1]
	}
}
