package mlx_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/engine"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// stillWorks checks that the engine works after a failure.
func stillWorks(t *testing.T) {
	t.Helper()
	mlxtest.Do(t, func(e *mlx.Thread) {
		if got := mlx.Add(mlx.Scalar(e, float32(2)), mlx.Scalar(e, float32(3))).Float32s(); got[0] != 5 {
			t.Errorf("2+3 is %v", got)
		}
	})
}

// An operation with wrong shapes returns an error with its name and the shapes, and the process continues.
func TestBadShape(t *testing.T) {
	err := mlxtest.Try(t, func(e *mlx.Thread) {
		mlx.MatMul(mlx.Zeros(e, mlx.Float32, 2, 3), mlx.Zeros(e, mlx.BFloat16, 4, 5))
	})
	wantError(t, err, "MatMul(float32[2 3], bfloat16[4 5])")
	stillWorks(t)
}

// Within confines a failure to a part of the work and frees that part's arrays.
func TestWithin(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		outer := mlx.Scalar(e, float32(1))
		var inner, kept *mlx.Array
		err := e.Within(func() error {
			inner, kept = mlx.Scalar(e, float32(2)), mlx.Keep(mlx.Scalar(e, float32(3)))
			mlx.MatMul(inner, kept)
			return nil
		})
		wantError(t, err, "MatMul(float32[], float32[])")
		own := errors.New("its own")
		if err := e.Within(func() error { return own }); err != own {
			t.Errorf("got %v", err)
		}
		if err := e.Within(func() error { mlx.Eval(inner); return nil }); err == nil {
			t.Error("an array outlives its part")
		}
		if sum := mlx.Add(outer, kept).Float32s(); sum[0] != 4 {
			t.Errorf("1+3 is %v", sum)
		}
		mlx.Free(kept)
	})
}

// Awaited reports whether other calls wait for the thread.
func TestAwaited(t *testing.T) {
	done := make(chan error)
	var thread *mlx.Thread
	mlxtest.Do(t, func(e *mlx.Thread) {
		if thread = e; e.Awaited() {
			t.Error("somebody waits")
		}
		go func() { done <- thread.Do(context.Background(), func() error { return nil }) }()
		for !e.Awaited() {
			runtime.Gosched()
		}
	})
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// An array that exceeds the memory budget is refused before anything is evaluated, and the process continues.
func TestOverBudget(t *testing.T) {
	err := mlxtest.Try(t, func(e *mlx.Thread) { mlx.Zeros(e, mlx.Float32, 1<<24, 1<<14) })
	if !errors.Is(err, mlx.ErrOutOfMemory) {
		t.Errorf("got %v", err)
	}
	wantError(t, err, "float32[16777216 16384] needs 1099511627776 bytes")
	stillWorks(t)

	var old int64
	mlxtest.Do(t, func(e *mlx.Thread) {
		old = e.Memory().Budget
		e.SetBudget(e.Memory().Active + 1000)
	})
	err = mlxtest.Try(t, func(e *mlx.Thread) { mlx.Eval(mlx.Zeros(e, mlx.Float32, 300)) })
	if !errors.Is(err, mlx.ErrOutOfMemory) {
		t.Errorf("1200 bytes of 1000: %v", err)
	}
	err = mlxtest.Try(t, func(e *mlx.Thread) { mlx.FromSlice(e, make([]float32, 300)) })
	if !errors.Is(err, mlx.ErrOutOfMemory) {
		t.Errorf("1200 bytes of 1000 from the host: %v", err)
	}
	mlxtest.Do(t, func(e *mlx.Thread) { e.SetBudget(old) })
	stillWorks(t)
}

func TestDoReturnsErrors(t *testing.T) {
	own := errors.New("own")
	if err := mlxtest.Open(t).Do(t.Context(), func() error { return own }); !errors.Is(err, own) {
		t.Errorf("got %v", err)
	}
}

// A panic other than an *Error is a bug. It is raised in the caller, with the stack where it happened.
func TestDoPanics(t *testing.T) {
	thread := mlxtest.Open(t)
	defer func() {
		p, _ := recover().(string)
		if !strings.Contains(p, "a bug") || !strings.Contains(p, "engine thread:") || !strings.Contains(p, "TestDoPanics") {
			t.Errorf("the panic was %q", p)
		}
		stillWorks(t)
	}()
	_ = thread.Do(t.Context(), func() error { panic("a bug") })
}

func TestDoCancelledWhileQueued(t *testing.T) {
	thread := mlxtest.Open(t)
	busy, release := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- thread.Do(context.Background(), func() error { close(busy); <-release; return nil })
	}()
	<-busy
	ctx, cancel := context.WithCancel(t.Context())
	ran := false
	go cancel()
	err := thread.Do(ctx, func() error { ran = true; return nil })
	close(release)
	if !errors.Is(err, context.Canceled) || ran {
		t.Errorf("got %v, ran: %v", err, ran)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestDoWithCancelledContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // the thread is idle, so select may choose either case
		if err := mlxtest.Open(t).Do(ctx, func() error { t.Error("it ran"); return nil }); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
	}
}

func TestDoFromManyGoroutines(t *testing.T) {
	thread := mlxtest.Open(t)
	var wg sync.WaitGroup
	var inside, most atomic.Int32
	for i := range 50 {
		wg.Go(func() {
			err := thread.Do(context.Background(), func() error {
				most.Store(max(most.Load(), inside.Add(1)))
				defer inside.Add(-1)
				x := mlx.FromSlice(thread, []float32{float32(i), 1})
				if got := mlx.Sum(x, false).Float32s()[0]; got != float32(i+1) {
					t.Errorf("%d+1 is %v", i, got)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most.Load() != 1 {
		t.Errorf("%d functions ran at once", most.Load())
	}
}

// A process has at most one engine, even after Close, so the test runs in a process of its own.
func TestCloseAndReopen(t *testing.T) {
	mlxtest.Open(t) // skips the test if there is no engine
	if os.Getenv("INGOT_TEST_CLOSE") == "" {
		self := exec.Command(os.Args[0], "-test.run=^TestCloseAndReopen$", "-test.v")
		self.Env = append(os.Environ(), "INGOT_TEST_CLOSE=1")
		if out, err := self.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	thread := mlxtest.Open(t)
	thread.Close()
	thread.Close()
	if err := thread.Do(t.Context(), func() error { return nil }); !errors.Is(err, mlx.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	e, err := engine.Find(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mlx.Open(e, mlx.Options{}); err == nil || !strings.Contains(err.Error(), "already running") {
		t.Errorf("opening again: %v", err)
	}
}

func TestOpenRefusesWhatDoesNotLoad(t *testing.T) {
	if err := mlx.Available(); err != nil {
		t.Skipf("needs cgo: %v", err)
	}
	dir := t.TempDir()
	lib := dir + "/libmlx.so"
	if err := os.WriteFile(lib, []byte("not a library"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := mlx.Open(&engine.Engine{Dir: dir, Lib: lib, Bridge: lib}, mlx.Options{})
	if !errors.Is(err, engine.ErrLoad) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
}

func TestEvalOfNothing(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		mlx.Eval()
		mlx.Eval(nil, nil)
		mlx.AsyncEval()
		x := mlx.Ones(e, mlx.Float32, 2)
		mlx.AsyncEval(nil, x, nil)
		if got := x.Float32s(); !slices.Equal(got, []float32{1, 1}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestStreams(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		x := mlx.Arange(e, 0, 100, 1, mlx.Float32)
		var y *mlx.Array
		e.WithStream(e.NewStream(false), func() {
			y = mlx.Sum(mlx.Square(x), false)
			mlx.Eval(y)
			e.Synchronize()
		})
		if got := mlx.AddScalar(y, 1).Float32s()[0]; got != 328351 {
			t.Errorf("got %v", got)
		}
	})
}

func TestKernelNeedsItsDevice(t *testing.T) {
	if mlxtest.Open(t).Info().GPU {
		t.Skip("this machine has a GPU")
	}
	for _, cuda := range []bool{false, true} {
		err := mlxtest.Try(t, func(e *mlx.Thread) {
			mlx.NewKernel(e, mlx.KernelSource{Name: "twice", CUDA: cuda, Inputs: []string{"x"}, Outputs: []string{"y"},
				Source: "y[0] = 2 * x[0];"})
		})
		wantError(t, err, "kernel twice: this machine has no")
	}
}
