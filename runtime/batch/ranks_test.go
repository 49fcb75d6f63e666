package batch

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/shard"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/runtime/ranks"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// ranked is a model that ranks of this process compute, each on a thread of its own.
type ranked struct {
	*Engine
	group     sync.WaitGroup
	err       error // of all ranks, after group is done
	following []net.Conn
}

// groups are the groups that a test has opened.
type groups struct {
	size   int
	stages bool // the ranks have different layers
	open   []*ranked
}

// wait waits until the ranks have ended. The test fails if one has failed.
func (g *groups) wait(t *testing.T) {
	t.Helper()
	for _, r := range g.open {
		if r.group.Wait(); r.err != nil {
			t.Error(r.err)
		}
	}
	g.open = nil
}

// pipe returns the ends of a connection over the loopback interface.
func pipe(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err == nil {
		b, err = l.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}

// load returns a function that loads a model over ranks.
func (all *groups) load(t *testing.T, name string, o runtime.Options) func() *Engine {
	t.Helper()
	store, entry := converttest.Pack(t, name)
	o.Float32 = true
	if all.stages {
		o.Stages = stagesOf(t, processor.Files{Store: store, Image: entry.Image}, all.size)
	}
	return func() *Engine {
		t.Helper()
		var leading, following []net.Conn
		for range all.size - 1 {
			a, b := pipe(t)
			leading, following = append(leading, a), append(following, b)
		}
		start := ranks.Start{Program: "test", Engine: mlxtest.Open(t).Info().Version, Name: name, Image: entry.Digest}
		r, opened := &ranked{following: following}, make(chan error, 1)
		f := processor.Files{Store: store, Image: entry.Image}
		r.group.Go(func() {
			r.err = mlxtest.EachRank(t, all.size, time.Minute, func(e *mlx.Thread, g *mlx.Group) error {
				if rank := g.Rank(); rank > 0 {
					return ranks.Follow(context.Background(), following[rank-1], "test",
						func(ctx context.Context, s ranks.Start) (*load.Model, error) {
							return load.OpenRank(ctx, e, g, f, f.Processor, o)
						})
				}
				l := ranks.Lead(leading, start)
				l.CheckEvery(3)
				var err error
				r.Engine, err = OpenRanks(t.Context(), e, g, l, store, entry, f.Processor, o)
				opened <- err
				if err != nil {
					return err
				}
				<-l.Ended()
				return nil
			})
		})
		select {
		case err := <-opened:
			if err != nil {
				r.group.Wait()
				t.Fatal(errors.Join(err, r.err))
			}
		case <-time.After(time.Minute):
			t.Fatal("the ranks do not load the model")
		}
		all.open = append(all.open, r)
		return r.Engine
	}
}

// stagesOf divides the layers of a model evenly.
func stagesOf(t *testing.T, f processor.Files, size int) shard.Stages {
	t.Helper()
	config, err := f.Config()
	if err != nil {
		t.Fatal(err)
	}
	s, err := shard.Even(config, size)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rankedModels lists models with every kind of state, of those that divide; the second and third have drafts that
// all ranks compute.
var rankedModels = []string{"llama-default", "qwen3_5-default", "deepseek_v3-published", "llama-mistral", "gemma4-e2b",
	"glm4_moe_lite-default", "qwen3_5-vision"}

// Requests to a model over ranks generate the same tokens as alone on one rank. Its requests are as those of
// TestRandomTraffic; 1,000 in a long run.
func TestRankedTraffic(t *testing.T) {
	models := rankedModels[:runtest.Pick(3, len(rankedModels))]
	for i, name := range models {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(runtest.Pick(1, 2)) {
				size := 2 + int(seed)*2
				all := &groups{size: size}
				f := newTrafficTo(t, name, uint64(i)+seed, uint64(i), all.load)
				f.run(runtest.Pick(15, 1000/len(models)/2+1))
				f.end()
				all.wait(t)
			}
		})
	}
}

// Ranks that have different layers generate the same tokens, too. The second model has a draft, which rank 0 computes
// alone, the third layers that must be on one rank, the last one pictures.
func TestStagedTraffic(t *testing.T) {
	models := []string{"qwen3_5-default", "deepseek_v3-published", "llama-mistral", "gemma4-e2b", "zamba2-saved",
		"deepseek_v4-published", "qwen3_5-vision"}[:runtest.Pick(2, 7)]
	for i, name := range models {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(runtest.Pick(1, 2)) {
				all := &groups{size: 2, stages: true}
				f := newTrafficTo(t, name, uint64(i)+seed, uint64(i), all.load)
				f.run(runtest.Pick(12, 1000/len(models)/2+1))
				f.end()
				all.wait(t)
			}
		})
	}
}

// When a rank ends, the running requests and those that come later end with an error that says which one, and the
// model can be loaded again.
func TestRankEnds(t *testing.T) {
	all := &groups{size: 2}
	open := all.load(t, "llama-default", runtime.Options{PrefixCache: 1 << 20})
	for _, during := range []bool{false, true} {
		l := open()
		r := all.open[len(all.open)-1]
		long := runtime.Request{Prompt: []int32{5, 6, 7}, MaxTokens: 100, IgnoreEOS: true}
		if !during {
			r.following[0].Close()
			<-l.Ended()
		}
		begun := time.Now()
		for e, err := range l.Generate(t.Context(), long) {
			if during && e.Stats.Tokens == 3 {
				r.following[0].Close()
			}
			if err == nil {
				continue
			}
			if !errors.Is(err, runtime.ErrRanks) || !strings.Contains(err.Error(), "rank 1") {
				t.Errorf("the request ends with %v", err)
			}
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the request ended after %v", took)
		}
		<-l.Ended()
		_, _, _, err := runtimetest.Collect(t.Context(), l, long)
		if !errors.Is(err, runtime.ErrRanks) {
			t.Errorf("a request after the end of the group: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if r.group.Wait(); !errors.Is(r.err, runtime.ErrRanks) {
			t.Errorf("the rank ends with %v", r.err)
		}
		all.open = nil
	}
	l := open()
	if _, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: []int32{5}, MaxTokens: 2,
		IgnoreEOS: true}); err != nil || last.Done != runtime.DoneLength {
		t.Errorf("a request to the next group: %+v, %v", last, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	all.wait(t)
}

// Formats and seeds, with drafts, in batches, give the same texts over ranks as on one. In a long run, ranks that have
// different layers do so, too.
func TestRankedFormats(t *testing.T) {
	one := loadModel(t, "demo")
	for _, stages := range runtest.Pick([]bool{false}, []bool{false, true}) {
		all := &groups{size: 2, stages: stages}
		l := all.load(t, "demo", runtime.Options{PrefixCache: 1 << 20})()
		rankedFormats(t, one, l)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		all.wait(t)
	}
}

func rankedFormats(t *testing.T, one, l *Engine) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 5))
	seed := int64(7)
	formats := []runtime.Format{{}, regex(`[a-z]+( [a-z]+){3}\.`), regex(`(yes|no), [0-9]{1,4}`),
		{Kind: runtime.FormatSchema, Source: `{"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":["x","yy"]}},
			"required":["a","b"],"additionalProperties":false}`}}
	slots := make(chan struct{}, 6)
	var running sync.WaitGroup
	for range runtest.Pick(16, 300) {
		q := prompted(t, one, []string{"Once there was", "The ship", "She said"}[r.IntN(3)], runtime.Request{
			MaxTokens: 40, Format: formats[r.IntN(len(formats))], Draft: fixed(r.IntN(4) + 1)})
		if r.IntN(2) == 0 {
			q.Sampling.Temperature, q.Sampling.Seed = 0.8, &seed
		}
		_, want, _, err := runtimetest.Collect(t.Context(), one, q)
		if err != nil {
			t.Fatal(err)
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			if _, got, _, err := runtimetest.Collect(t.Context(), l, q); err != nil || got != want {
				t.Errorf("%+v: %q, %v; one rank %q", q.Format, got, err, want)
			}
		})
	}
	running.Wait()
}
