//go:build unix

package runner

import (
	"context"
	"fmt"
	"iter"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ingotml/ingot/runtime"
	"golang.org/x/sys/unix"
)

// role makes the test program a child, and selects its job.
const role = "INGOT_TEST_RUNNER"

func TestMain(m *testing.M) {
	switch what := os.Getenv(role); what {
	case "":
		os.Exit(m.Run())
	case "parent": // a parent that the test kills
		r, err := Start(context.Background(), options("child"))
		if err != nil {
			panic(err)
		}
		fmt.Println(r.PID())
		select {}
	case "stuck":
		stuck := func(context.Context, func(float64)) (runtime.Engine, error) {
			fmt.Println("stuck")
			for {
				_, _ = unix.Select(0, nil, nil, nil, nil) // blocks the thread like a loop in C++
			}
		}
		_ = serve(context.Background(), os.Stdin, os.Stdout, stuck, 50*time.Millisecond)
	default:
		playChild(what)
	}
}

// playChild serves the engine counter.
func playChild(what string) {
	out, err := Stdout()
	if err != nil {
		panic(err)
	}
	err = Serve(context.Background(), os.Stdin, out, func(ctx context.Context, progress func(float64)) (runtime.Engine,
		error) {
		switch what {
		case "no model":
			return nil, fmt.Errorf("the config is missing: %w", runtime.ErrImage)
		case "dies loading":
			fmt.Fprintln(os.Stderr, "a kernel was not there")
			os.Exit(3)
		case "loads for ever":
			<-ctx.Done()
			return nil, ctx.Err()
		case "garbles":
			fmt.Fprintln(out, "hello")
		}
		fmt.Println("a library says something")
		progress(0.5)
		progress(1)
		switch what {
		case "on a GPU":
			return gpuCounter{}, nil
		case "of a group":
			return &ranked{ended: make(chan struct{}), closes: 300 * time.Millisecond}, nil
		case "of a group, stuck":
			return &ranked{ended: make(chan struct{}), closes: time.Minute}, nil
		}
		return counter{}, nil
	})
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// gpuCounter is a counter on a GPU.
type gpuCounter struct{ counter }

func (gpuCounter) GPU() bool { return true }

// ranked is rank 0 of a group that ends with the first request.
type ranked struct {
	ended  chan struct{}
	closes time.Duration // how long Close takes
}

func (r *ranked) Close() error           { time.Sleep(r.closes); return nil }
func (r *ranked) Ended() <-chan struct{} { return r.ended }
func (r *ranked) Err() error             { return fmt.Errorf("%w: rank 1 is gone", runtime.ErrRanks) }

func (r *ranked) Generate(context.Context, runtime.Request) iter.Seq2[runtime.Event, error] {
	return func(yield func(runtime.Event, error) bool) {
		close(r.ended)
		yield(runtime.Event{}, r.Err())
	}
}

// counter generates numbers that start at the prompt's first token.
type counter struct{}

func (counter) Close() error { return nil }

func (counter) Generate(ctx context.Context, r runtime.Request) iter.Seq2[runtime.Event, error] {
	return func(yield func(runtime.Event, error) bool) {
		switch r.Prompt[0] {
		case 1000:
			panic("an index is out of range")
		case 1001:
			_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
			time.Sleep(time.Minute)
		case 1005: // dies like a thread of a library, without a crash report of Go's runtime
			_ = syscall.Exec("/bin/sh", []string{"sh", "-c", "kill -BUS $$"}, nil)
		case 1002:
			yield(runtime.Event{}, fmt.Errorf("token 5: %w", runtime.ErrPrompt))
			return
		case 1003:
			for range 20_000 {
				fmt.Fprintln(os.Stderr, "a line that nobody waits for")
			}
		case 1004:
			fmt.Fprintln(os.Stderr, "cancelled requests:", r.MaxTokens)
		}
		r.Queued()
		for i := range int32(r.MaxTokens) {
			select {
			case <-ctx.Done():
				yield(runtime.Event{}, ctx.Err())
				return
			case <-time.After(time.Millisecond / 4):
			}
			e := runtime.Event{IDs: []int32{r.Prompt[0] + i}, Text: "\u00e9\n",
				Stats: runtime.Stats{PromptTokens: len(r.Prompt), Tokens: int(i) + 1, PromptTime: 5,
					Drafted: 7, Accepted: 3, TargetSteps: 2}}
			if r.Format.Kind != "" {
				e.Text = r.Format.After + string(r.Format.Value())
			}
			if r.Format.StrictSchema && r.Format.BestEffort {
				e.LeftOut = []string{"/not"}
			}
			if r.LogProbs {
				e.LogProbs = []runtime.LogProb{{ID: e.IDs[0], LogProb: -0.5,
					Top: []runtime.TokenProb{{ID: 7, LogProb: float32(r.Sampling.LogitBias[7])}}}}
			}
			if r.PromptLogProbs && r.PromptOnly && r.Continues {
				e.PromptLogProbs, e.EndLogProb = e.LogProbs, &runtime.LogProb{ID: r.EndTokens[0], LogProb: -1.5}
			}
			if i+1 == int32(r.MaxTokens) {
				e.Done, e.Stop = runtime.DoneLength, strings.Join(r.Stop, "")
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Embed returns vectors whose last bits show whether they arrive unchanged.
func (counter) Embed(ctx context.Context, r runtime.EmbedRequest) (e runtime.Embeddings, err error) {
	for _, ids := range r.Inputs {
		switch {
		case ids[0] == 1000:
			panic("an index is out of range")
		case ids[0] == 1001:
			<-ctx.Done()
			return e, ctx.Err()
		case r.Dimensions > 3:
			return e, fmt.Errorf("%d dimensions: %w", r.Dimensions, runtime.ErrEmbedding)
		}
		e.Vectors = append(e.Vectors, []float32{float32(ids[0]) / 3, -math.SmallestNonzeroFloat32,
			float32(len(ids))}[:r.Dimensions])
	}
	return e, nil
}

func options(what string) Options {
	return Options{Command: []string{os.Args[0]}, Env: append(os.Environ(), role+"="+what), Grace: 5 * time.Second}
}

func start(t *testing.T) *Runner {
	t.Helper()
	r, err := Start(t.Context(), options("child"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		if alive(r.PID()) {
			t.Error("the child outlives Close")
		}
	})
	return r
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func collect(ctx context.Context, e runtime.Engine, r runtime.Request) (ids []int32, last runtime.Event, err error) {
	for ev, err := range e.Generate(ctx, r) {
		if err != nil {
			return ids, ev, err
		}
		ids, last = append(ids, ev.IDs...), ev
	}
	return ids, last, nil
}

// noStreams waits until the parent has no streams left: a stream may end after its reader has left.
func noStreams(t *testing.T, r *Runner) {
	t.Helper()
	open := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.streams)
	}
	for begun := time.Now(); open() != 0; time.Sleep(time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			t.Errorf("%d streams are left", open())
			return
		}
	}
}
