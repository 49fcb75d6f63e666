package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingotml/ingot/cache/prefix"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// trafficModels lists models with every kind of state: all positions, windows, recurrent, shared between layers and
// compressed, the second also with a draft of its own, the third with index keys, the fourth in two attentions of each
// layer. The last one processes pictures.
var trafficModels = []string{"llama-default", "llama-mistral", "qwen3_5-default", "gemma4-e2b", "glm4_moe_lite-default",
	"deepseek_v3-published", "glm_moe_dsa-published", "longcat_flash-published", "qwen3_5-vision"}

// With random arrivals, branches, repeats, cancellations, preemption, evictions and restarts, a request generates the
// same tokens as alone and without a cache.
func TestRandomTraffic(t *testing.T) {
	for i, name := range trafficModels {
		for seed := range uint64(runtest.Rounds(2)) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				f := newTraffic(t, name, seed, uint64(i))
				f.run(20)
				f.end()
			})
		}
	}
}

// hybridModels lists models with each kind of recurrent layer: selective scans of heads and of channels, short
// convolutions, also beside sliding layers, scans beside attention in one layer, two states in one layer, layers
// without state, delta nets with negative eigenvalues, or with a decay for each column beside latent attention, linear
// attention without a convolution, gated recurrences, and scans beside shared transformer blocks. The last three have
// entries of several positions, and what the next ones are made of; several residual streams, beside windows that
// layers share; and blocks of positions, with embeddings of n-grams.
var hybridModels = []string{"mamba-published", "mamba2-saved", "jamba-published", "falcon_h1-saved",
	"granitemoehybrid-published", "nemotron_h-published", "lfm2-saved", "lfm3-published", "rwkv7-published",
	"olmo_hybrid-published", "minimax-published", "recurrent_gemma-saved", "zamba2-saved", "kimi_linear-published",
	"deepseek_v4-published", "gemma3n-saved", "qwen4_exp-published"}

// The same for models with each kind of recurrent or compressed layer. Half of them process prompts in chunks of 16.
func TestHybridTraffic(t *testing.T) {
	for i, name := range runtest.Sample(hybridModels) {
		t.Run(name, func(t *testing.T) {
			f := newTraffic(t, name, uint64(i%2), uint64(i))
			f.run(15)
			f.end()
		})
	}
}

// The same for 10,000 requests in a long run, or INGOT_SOAK_REQUESTS of them. TestRandomTraffic is its short form.
func TestSoakTraffic(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("INGOT_SOAK_REQUESTS"))
	if err != nil {
		runtest.LongRun.Only(t)
		n = 10_000
	}
	before := goruntime.NumGoroutine()
	models := slices.Concat(trafficModels, hybridModels)
	for i, name := range models {
		t.Run(name, func(t *testing.T) {
			f := newTraffic(t, name, 7+uint64(i), 7)
			f.run(n / len(models))
			f.end()
		})
	}
	deadline := time.Now().Add(5 * time.Second)
	for ; goruntime.NumGoroutine() > before+1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", goruntime.NumGoroutine(), before)
		}
	}
}

// traffic sends random requests to a model.
type traffic struct {
	t *testing.T
	*rand.Rand
	load     func() *Engine
	l        *Engine
	budget   int64
	want     *oracle
	pictures []runtime.Picture // for prompts
	slots    chan struct{}
	running  sync.WaitGroup

	mu       sync.Mutex
	past     []exchange
	expected [][]int32 // texts of recent requests, from which guess drafts
	mistakes *rand.Rand

	guesses bool

	steps, pauses, cancels, cached, restarts, drafted, accepted atomic.Int64

	loaded int64 // nodes restored from disk
}

// exchange is a prompt and its continuation.
type exchange struct {
	tokens   []int32
	pictures []runtime.Picture
}

func newTraffic(t *testing.T, name string, seed, stream uint64) *traffic {
	t.Helper()
	return newTrafficTo(t, name, seed, stream, loadCached)
}

// newTrafficTo is newTraffic to models that load, which is as loadCached, loads.
func newTrafficTo(t *testing.T, name string, seed, stream uint64,
	load func(*testing.T, string, runtime.Options) func() *Engine) *traffic {
	t.Helper()
	runtimetest.NoArrays(t)
	f := &traffic{t: t, Rand: rand.New(rand.NewPCG(seed, stream)), slots: make(chan struct{}, 8)}
	f.budget = []int64{100 << 10, 2 << 20}[seed%2]
	f.mistakes = rand.New(rand.NewPCG(seed, stream+1))
	o := runtime.Options{PrefixCache: f.budget, PrefixDir: t.TempDir(), PrefixDisk: 4 << 20, Sequences: 6,
		Chunk: []int{0, 16}[stream%2]}
	if f.guesses = seed%2 == 1; f.guesses { // else drafts by n-gram lookup
		o.Draft.Guess = f.guess
	}
	f.load = load(t, name, o)
	f.want = newOracle(t, name)
	if f.want.model.Processor.Vision != nil {
		f.pictures = runtimetest.Pictures(t, "shapes.png", "wide.png")
		f.pictures[0].Name, f.pictures[1].Name = "shapes", "wide"
	}
	f.open(seed%2 == 1)
	return f
}

// open loads the model. It sometimes has memory for a single request during a step.
func (f *traffic) open(ahead bool) {
	f.l = f.load()
	b := f.l.batcher
	b.stepper.sendsAhead = ahead && b.ranks == nil
	b.minShared = 1 + f.IntN(8)
	limit, r := b.memory.limit, rand.New(rand.NewPCG(f.Uint64(), 1))
	b.onStep = func(plan []batchItem) error {
		f.steps.Add(1)
		b.memory.limit = limit
		if len(plan) > 1 && r.IntN(12) == 0 {
			f.pauses.Add(1)
			b.memory.limit = 1
		}
		return nil
	}
}

func (f *traffic) restart() {
	f.t.Helper()
	f.running.Wait()
	ahead := f.l.batcher.stepper.sendsAhead
	f.close()
	f.open(ahead)
	f.restarts.Add(1)
}

func (f *traffic) close() {
	f.t.Helper()
	if err := f.l.Close(); err != nil {
		f.t.Error(err)
	}
	if f.l.prefixes.disk != nil {
		f.loaded += f.l.prefixes.disk.Stats().Loaded
	}
}

// end closes the model and logs statistics.
func (f *traffic) end() {
	f.t.Helper()
	f.running.Wait()
	f.again()
	u, err := f.l.Usage(f.t.Context())
	if err != nil || u.Running != 0 || u.Waiting != 0 || u.State != 0 || u.Weights == 0 || u.Prefix.Bytes > f.budget {
		f.t.Errorf("afterwards: %+v, %v", u, err)
	}
	f.close()
	f.t.Logf("%d steps, %d cancels, %d preemptions, %d restarts, %d tokens cached, "+
		"%d nodes from disk, %d of %d drafts accepted",
		f.steps.Load(), f.cancels.Load(), f.pauses.Load(), f.restarts.Load(), f.cached.Load(), f.loaded, f.accepted.Load(),
		f.drafted.Load())
	if f.cached.Load() == 0 || f.guesses && f.accepted.Load() == 0 {
		f.t.Error("nothing was ever cached, or no draft accepted")
	}
}

// run sends requests, several of them at once.
func (f *traffic) run(requests int) {
	f.t.Helper()
	for range requests {
		switch f.IntN(30) {
		case 0:
			f.restart()
		case 1, 2:
			f.evict()
		}
		q := f.request()
		expect := f.want.want(q.Prompt, q.MaxTokens, q.Pictures...)
		f.vary(&q)
		scores := f.want.scores(q)
		stop := f.ending(q.MaxTokens)
		f.slots <- struct{}{}
		f.mu.Lock()
		f.expected = append(f.expected[max(0, len(f.expected)-20):], slices.Concat(q.Prompt, expect))
		f.mu.Unlock()
		f.running.Go(func() {
			defer func() { <-f.slots }()
			f.send(q, expect, scores, stop)
		})
	}
}

// again sends a prompt twice, one after the other, so that something is cached whatever the random requests were.
func (f *traffic) again() {
	f.t.Helper()
	prompt := make([]int32, 40)
	for i := range prompt {
		prompt[i] = 5 + int32(i)%16
	}
	expect := f.want.want(prompt, 4)
	for range 2 {
		f.send(runtime.Request{Prompt: prompt, MaxTokens: len(expect), IgnoreEOS: true}, expect, nil, interruption{})
	}
}

// vary sets parameters that must not change a greedy request's tokens.
func (f *traffic) vary(q *runtime.Request) {
	switch f.IntN(4) {
	case 0:
		q.Draft = runtime.Draft{Mode: runtime.DraftOff}
	case 1, 2:
		q.Draft = fixed(1 + f.IntN(6))
	}
	q.Priority = f.IntN(3)
	q.PromptLogProbs = f.IntN(4) == 0
}

// guess drafts the known continuation, sometimes with a wrong token.
func (f *traffic) guess(tokens []int32, n int) []int32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range slices.Backward(f.expected) {
		if len(text) > len(tokens) && slices.Equal(text[:len(tokens)], tokens) {
			drafts := slices.Clone(text[len(tokens):min(len(text), len(tokens)+n)])
			if i := f.mistakes.IntN(2 * len(drafts)); i < len(drafts) {
				drafts[i] = 7
			}
			return drafts
		}
	}
	return []int32{8, 9}[:min(n, 2)]
}

// evict reduces the prefix cache's budget for a moment.
func (f *traffic) evict() {
	f.t.Helper()
	budget := f.Int64N(f.budget)
	err := f.l.model.Do(f.t.Context(), func() error {
		f.l.prefixes.tree.SetBudget(budget + 1)
		f.l.prefixes.tree.SetBudget(f.budget)
		return nil
	})
	if err != nil {
		f.t.Error(err)
	}
}

// request returns a new request, or one that repeats or continues an earlier one from any position.
func (f *traffic) request() runtime.Request {
	for {
		var p exchange
		f.mu.Lock()
		if len(f.past) > 0 && f.IntN(4) > 0 {
			p = f.past[len(f.past)-1-f.IntN(min(len(f.past), 60))]
		}
		f.mu.Unlock()
		p.tokens = slices.Clone(p.tokens[:f.IntN(len(p.tokens)+1)])
		more := 1 + f.IntN(30)
		if len(p.tokens) > 0 && f.IntN(4) == 0 {
			more = 0
		}
		pads := countPads(f, p.tokens)
		p.pictures = slices.Clone(p.pictures[:pads])
		for _, id := range randomPrompt(f.Rand, f.want.Engine, more) {
			if f.pictures != nil && id >= runtimetest.VisionStart {
				p.pictures = append(p.pictures, f.pictures[f.IntN(len(f.pictures))])
				p.tokens = append(p.tokens, 9, runtimetest.ImagePad, 9) // text between them keeps them separate
				continue
			}
			p.tokens = append(p.tokens, id)
		}
		n := 1 + f.IntN(12)
		if len(p.tokens)+8*len(p.pictures)+n < f.l.Processor().Context() && len(p.pictures) < 4 {
			return runtime.Request{Prompt: p.tokens, Pictures: p.pictures, MaxTokens: n, IgnoreEOS: true,
				Owner: []string{"", "", "a", prefix.Public}[n%4]}
		}
	}
}

func countPads(f *traffic, tokens []int32) (n int) {
	for _, id := range tokens {
		if f.pictures != nil && id == runtimetest.ImagePad {
			n++
		}
	}
	return n
}

// interruption ends a request early; the zero value does not.
type interruption struct {
	cancelAfter int           // tokens
	stopAfter   int           // tokens, by a caller that stops reading
	deadline    time.Duration // from the start
}

func (f *traffic) ending(n int) (e interruption) {
	switch f.IntN(12) {
	case 0:
		e.cancelAfter = 1 + f.IntN(n)
	case 1:
		e.stopAfter = 1 + f.IntN(n)
	case 2:
		e.deadline = time.Duration(1+f.IntN(20_000)) * time.Microsecond
	}
	return e
}

// send runs a request and compares its tokens and the log-probabilities of its prompt.
func (f *traffic) send(q runtime.Request, expect []int32, scores []runtime.LogProb, e interruption) {
	ctx, cancel := context.WithTimeout(f.t.Context(), cmp.Or(e.deadline, time.Hour))
	defer cancel()
	var ids []int32
	var scored []runtime.LogProb
	var last runtime.Event
	for ev, err := range f.l.Generate(ctx, q) {
		if err != nil {
			if e == (interruption{}) || !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
				f.t.Error(err)
			}
			break
		}
		ids, last, scored = append(ids, ev.IDs...), ev, append(scored, ev.PromptLogProbs...)
		if e.cancelAfter > 0 && len(ids) >= e.cancelAfter {
			cancel()
		}
		if e.stopAfter > 0 && len(ids) >= e.stopAfter {
			break
		}
	}
	if len(ids) > len(expect) || !slices.Equal(ids, expect[:len(ids)]) || e == (interruption{}) &&
		(len(ids) != len(expect) || last.Done != runtime.DoneLength) {
		f.t.Errorf("a prompt of %d with %d pictures: %v, want %v", len(q.Prompt), len(q.Pictures), ids, expect)
	}
	if last.Done == "" { // some may have come before the end
		scores = scores[:min(len(scored), len(scores))]
	}
	sameScores(f.t, scored, scores, 1e-3)
	f.cached.Add(int64(last.Stats.CachedTokens))
	f.drafted.Add(int64(last.Stats.Drafted))
	f.accepted.Add(int64(last.Stats.Accepted))
	if last.Done == "" {
		f.cancels.Add(1)
	}
	if f.pictures != nil { // the generated text may look like the mark of a picture
		if i := slices.IndexFunc(ids, func(id int32) bool { return id >= runtimetest.VisionStart }); i >= 0 {
			ids = ids[:i]
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.past = append(f.past, exchange{append(slices.Clone(q.Prompt), ids...), q.Pictures})
}
