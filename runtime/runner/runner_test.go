//go:build unix

package runner

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/runtime"
)

func TestManyRequests(t *testing.T) {
	r := start(t)
	var wg sync.WaitGroup
	for i := range int32(20) {
		wg.Go(func() {
			n := int(5 + i)
			ids, last, err := collect(t.Context(), r, runtime.Request{Prompt: []int32{10 * i, 1}, MaxTokens: n})
			if err != nil || len(ids) != n || ids[n-1] != 10*i+int32(n)-1 || last.Done != runtime.DoneLength ||
				last.Text != "\u00e9\n" ||
				last.Stats != (runtime.Stats{PromptTokens: 2, Tokens: n, PromptTime: 5, Drafted: 7, Accepted: 3, TargetSteps: 2}) {
				t.Errorf("%d: %v, %+v, %v", i, ids, last, err)
			}
		})
	}
	wg.Wait()
	noStreams(t, r)
}

// The parent learns whether the child computes on a GPU.
func TestGPU(t *testing.T) {
	if start(t).GPU() {
		t.Error("an engine without a GPU has one")
	}
	r, err := Start(t.Context(), options("on a GPU"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if !r.GPU() {
		t.Error("an engine on a GPU has none")
	}
}

func TestErrorsKeepTheirKind(t *testing.T) {
	r := start(t)
	if _, _, err := collect(t.Context(), r, runtime.Request{Prompt: []int32{1002}, MaxTokens: 1}); !errors.Is(err,
		runtime.ErrPrompt) || !strings.Contains(err.Error(), "token 5") {
		t.Errorf("got %v", err)
	}
	if _, _, err := collect(t.Context(), r, runtime.Request{Prompt: []int32{1000}, MaxTokens: 1}); err == nil ||
		errors.Is(err, ErrDied) || !strings.Contains(err.Error(), "out of range") {
		t.Errorf("a panic in a request: %v", err)
	}
	if _, _, err := collect(t.Context(), r, runtime.Request{Prompt: []int32{1},
		Sampling: runtime.Sampling{Temperature: math.NaN()}}); !errors.Is(err, runtime.ErrSampling) {
		t.Errorf("a temperature of NaN: %v", err)
	}
	if ids, _, err := collect(t.Context(), r, runtime.Request{Prompt: []int32{1}, MaxTokens: 2}); err != nil ||
		len(ids) != 2 {
		t.Errorf("afterwards: %v, %v", ids, err)
	}
}

// The caller learns that the child has queued a request before the first event, and of a refused one nothing.
func TestQueued(t *testing.T) {
	r := start(t)
	for first, want := range map[int32]int{1: 1, 1002: 0} {
		queued := 0
		request := runtime.Request{Prompt: []int32{first}, MaxTokens: 2, Queued: func() { queued++ }}
		for range r.Generate(t.Context(), request) {
			if queued != want {
				t.Errorf("prompt %d was queued %d times before its events, want %d", first, queued, want)
			}
		}
	}
}

// When a request reports that the child's group of ranks has ended, the child has ended, too, so that the pool starts
// another one for the next request. A child that does not end holds the report up for [endGrace] only.
func TestGroupEnds(t *testing.T) {
	for _, c := range []struct {
		role  string
		ended bool
	}{{"of a group", true}, {"of a group, stuck", false}} {
		t.Run(c.role, func(t *testing.T) {
			r, err := Start(t.Context(), options(c.role))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(r.kill)
			_, _, err = collect(t.Context(), r, runtime.Request{Prompt: []int32{1}, MaxTokens: 1})
			if !errors.Is(err, runtime.ErrRanks) || !strings.Contains(err.Error(), "rank 1 is gone") {
				t.Errorf("the request ended with %v", err)
			}
			select {
			case <-r.Done():
				if !c.ended {
					t.Error("the child has ended")
				}
			default:
				if c.ended {
					t.Error("the child runs after its requests have ended")
				}
			}
		})
	}
}

// Log-probabilities, formats and stop texts cross the pipe in both directions.
func TestLogProbs(t *testing.T) {
	want := []runtime.LogProb{{ID: 5, LogProb: -0.5, Top: []runtime.TokenProb{{ID: 7, LogProb: -2.5}}}}
	r := runtime.Request{Prompt: []int32{5}, MaxTokens: 1, LogProbs: true, TopLogProbs: 1,
		Sampling:       runtime.Sampling{LogitBias: map[int32]float64{7: -2.5}},
		PromptLogProbs: true, PromptOnly: true, Continues: true, EndTokens: []int32{9}}
	r.Format, r.Stop = runtime.Format{Kind: runtime.FormatRegex, Source: "a\n|b", After: "</think>",
		StrictSchema: true, BestEffort: true}, []string{"end"}
	_, last, err := collect(t.Context(), start(t), r)
	if err != nil || !reflect.DeepEqual(last.LogProbs, want) || !reflect.DeepEqual(last.PromptLogProbs, want) {
		t.Errorf("%+v, %+v, %v; want %+v", last.LogProbs, last.PromptLogProbs, err, want)
	}
	if end := last.EndLogProb; end == nil || end.ID != 9 || end.LogProb != -1.5 {
		t.Errorf("the end is %+v", end)
	}
	if want := `</think>"regex:a\n|b"`; last.Text != want || last.Stop != "end" {
		t.Errorf("the format came as %q, want %q; the stop text is %q", last.Text, want, last.Stop)
	}
	if !slices.Equal(last.LeftOut, []string{"/not"}) {
		t.Errorf("the options of schemas and what is left out: %q", last.LeftOut)
	}
}

// Vectors cross the pipe without a change.
func TestEmbed(t *testing.T) {
	r := start(t)
	e, err := r.Embed(t.Context(), runtime.EmbedRequest{Inputs: [][]int32{{1, 2}, {7}}, Dimensions: 3})
	want := runtime.Embeddings{Vectors: [][]float32{{1. / 3, -math.SmallestNonzeroFloat32, 2},
		{7. / 3, -math.SmallestNonzeroFloat32, 1}}, Tokens: 3}
	if err != nil || !reflect.DeepEqual(e, want) {
		t.Errorf("%v, %v; want %v", e, err, want)
	}
	if _, err := r.Embed(t.Context(), runtime.EmbedRequest{Inputs: [][]int32{{1}}, Dimensions: 4}); !errors.Is(err,
		runtime.ErrEmbedding) {
		t.Errorf("an error came as %v", err)
	}
	if _, err := r.Embed(t.Context(), runtime.EmbedRequest{Inputs: [][]int32{{1000}}}); err == nil ||
		!strings.Contains(err.Error(), "out of range") {
		t.Errorf("a panic came as %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.Embed(ctx, runtime.EmbedRequest{Inputs: [][]int32{{1001}}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a context that ends: %v", err)
	}
	noStreams(t, r)
}

func TestCancel(t *testing.T) {
	r := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for _, err := range r.Generate(ctx, runtime.Request{Prompt: []int32{1}, MaxTokens: 1 << 30}) {
		if n++; n == 3 {
			cancel()
		}
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			break
		}
	}
	for range r.Generate(t.Context(), runtime.Request{Prompt: []int32{1}, MaxTokens: 1 << 30}) {
		break // stop reading
	}
	begun := time.Now()
	r.Close() // waits for running requests: both must have ended
	if d := time.Since(begun); d > 4*time.Second {
		t.Errorf("Close took %v", d)
	}
	if _, _, err := collect(t.Context(), r, runtime.Request{Prompt: []int32{1}, MaxTokens: 1}); !errors.Is(err,
		errClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A request whose caller does not take its events ends when too many wait, and others go on.
func TestUntaken(t *testing.T) {
	r := start(t)
	free := make(chan struct{})
	go func() {
		defer close(free)
		for running := true; running; time.Sleep(time.Millisecond) {
			r.mu.Lock()
			running = len(r.streams) > 0
			r.mu.Unlock()
		}
	}()
	n, last := 0, error(nil)
	for _, err := range r.Generate(t.Context(), runtime.Request{Prompt: []int32{1}, MaxTokens: 1 << 30}) {
		n, last = n+1, err
		<-free
	}
	if most := limits.UntakenEvents / 512; !errors.Is(last, runtime.ErrBusy) || n < most/2 || n > 2*most {
		t.Errorf("%d events, %v", n, last)
	}
	ids, _, err := collect(t.Context(), r, runtime.Request{Prompt: []int32{1}, MaxTokens: 5})
	if len(ids) != 5 || err != nil {
		t.Errorf("another request: %v, %v", ids, err)
	}
	noStreams(t, r)
}

// When a child dies, its requests end with an error that says how.
func TestDeath(t *testing.T) {
	for name, c := range map[string]struct {
		kill func(r *Runner)
		want string
	}{
		"killed": {func(r *Runner) { _ = syscall.Kill(r.PID(), syscall.SIGKILL) }, "memory runs out"},
		"segmentation fault": {func(r *Runner) {
			_, _, _ = collect(context.Background(), r, runtime.Request{Prompt: []int32{1001}, MaxTokens: 1})
		}, "SIGSEGV"},
		"unreadable file": {func(r *Runner) { _ = syscall.Kill(r.PID(), syscall.SIGBUS) },
			"a file of the model cannot be read, `ingot fsck` finds it; its last words: SIGBUS"},
		"unreadable file, without a word": {func(r *Runner) {
			_, _, _ = collect(context.Background(), r, runtime.Request{Prompt: []int32{1005}, MaxTokens: 1})
		}, "bus error; a file of the model cannot be read, `ingot fsck` finds it"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			var wg sync.WaitGroup
			begun := make(chan struct{}, 8)
			for i := range 4 {
				wg.Go(func() {
					first := true
					var last error
					for _, err := range r.Generate(t.Context(), runtime.Request{Prompt: []int32{int32(i)}, MaxTokens: 1 << 30}) {
						if first {
							begun <- struct{}{}
							first = false
						}
						last = err
					}
					if !errors.Is(last, ErrDied) || !strings.Contains(last.Error(), c.want) {
						t.Errorf("a request ended with %v, want %q", last, c.want)
					}
				})
			}
			for range 4 {
				<-begun
			}
			c.kill(r)
			wg.Wait()
			<-r.Done()
			if !errors.Is(r.Err(), ErrDied) {
				t.Errorf("it died of %v", r.Err())
			}
			if _, _, err := collect(t.Context(), r, runtime.Request{Prompt: []int32{1}, MaxTokens: 1}); !errors.Is(err,
				ErrDied) {
				t.Errorf("a later request: %v", err)
			}
			if next := start(t); next != nil {
				if ids, _, err := collect(t.Context(), next, runtime.Request{Prompt: []int32{7}, MaxTokens: 1}); err != nil ||
					!slices.Equal(ids, []int32{7}) {
					t.Errorf("the next child: %v, %v", ids, err)
				}
			}
		})
	}
}

func TestLoading(t *testing.T) {
	var parts []float64
	o := options("child")
	o.Loaded = func(p float64) { parts = append(parts, p) }
	r, err := Start(t.Context(), o)
	if err != nil || !slices.Equal(parts, []float64{0.5, 1}) {
		t.Fatalf("%v, %v", parts, err)
	}
	r.Close()
	if _, err := Start(t.Context(), options("no model")); !errors.Is(err, runtime.ErrImage) ||
		!strings.Contains(err.Error(), "config is missing") {
		t.Errorf("a model that does not load: %v", err)
	}
	if _, err := Start(t.Context(), options("dies loading")); !errors.Is(err, ErrDied) ||
		!strings.Contains(err.Error(), "a kernel was not there") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("a child that dies: %v", err)
	}
	if _, err := Start(t.Context(), options("garbles")); !errors.Is(err, ErrDied) ||
		!strings.Contains(err.Error(), "invalid message") {
		t.Errorf("a child that writes something else: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Start(ctx, options("loads for ever")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a load that takes too long: %v", err)
	}
	if _, err := Start(t.Context(), Options{Command: []string{"/nowhere/ingot"}}); err == nil {
		t.Error("a program that is not there was started")
	}
}

// Standard error is read without limit, and its end is kept.
func TestStandardError(t *testing.T) {
	o := options("child")
	var all bytes.Buffer
	o.Stderr = &all
	r, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := collect(t.Context(), r, runtime.Request{Prompt: []int32{1003}, MaxTokens: 1}); err != nil {
		t.Error(err)
	}
	r.Close()
	if n := strings.Count(all.String(), "\n"); n != 20_001 || len(r.tail.kept) > tailBytes ||
		!strings.Contains(r.tail.last(), "nobody waits") {
		t.Errorf("%d lines, %d bytes kept", n, len(r.tail.kept))
	}
}
