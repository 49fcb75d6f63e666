package mlx

import (
	"fmt"
	"os"
	"strings"

	"github.com/ingotml/ingot/mlx/bridge"
	"github.com/ingotml/ingot/mlx/engine"
	"github.com/ingotml/ingot/mlx/machine"
)

// Options configures Open. The zero value suits most callers.
type Options struct {
	Budget     int64 // bytes that arrays may use; 0 means DefaultBudget
	CacheLimit int64 // bytes of free buffers kept for reuse; 0: an eighth of the budget, at most 2 GiB, on a CPU 32 MiB
	CPU        CPUOptions
}

// Info describes the loaded engine.
type Info struct {
	Version string            // of the library
	Flavour engine.Flavour    // of the wheel
	GPU     bool              // whether the default device is a GPU
	Device  map[string]string // the engine's properties of the device
}

// The most that is kept for reuse by default. A host's memory is cheap to allocate again, and most of what a long
// prompt frees, its smaller KV caches, fits nothing that follows: only what the parts of a forward pass reuse pays.
const (
	maxCache     = 2 << 30
	maxHostCache = 32 << 20
)

// Fork starts another engine thread of the process, for a rank of a group. Threads share the memory budget and the
// team of CPU threads: what runs while another thread has the team runs on its own thread alone, with the same results.
// Arrays belong to the thread that made them.
func (t *Thread) Fork() (*Thread, error) {
	return start(func(f *Thread) error {
		if _, failed := cInit(""); failed != "" {
			return fmt.Errorf("starting another engine thread: %s", failed)
		}
		f.frame, f.info = newFrame(), t.info
		return nil
	})
}

// Open loads an engine and starts its thread. It can be called once per process, because MLX cannot be unloaded.
func Open(e *engine.Engine, o Options) (*Thread, error) {
	if !haveCgo {
		return nil, ErrNoCgo
	}
	return start(func(t *Thread) error {
		if err := load(e); err != nil {
			return err
		}
		if err := cReportTruncated("ingot: " + Truncated); err != nil {
			return fmt.Errorf("starting the engine: watch for truncated files: %w", err)
		}
		gpu, failed := cInit(string(e.Flavour))
		if failed != "" {
			return fmt.Errorf("starting the engine in %s: %s", e.Dir, failed)
		}
		t.frame = newFrame()
		t.info = Info{Version: cVersion(), Flavour: e.Flavour, GPU: gpu, Device: keyValues(cDeviceInfo())}
		if o.Budget == 0 {
			o.Budget = DefaultBudget(t.info)
		}
		if o.CacheLimit == 0 {
			o.CacheLimit = min(o.Budget/8, maxCache)
			if !gpu {
				o.CacheLimit = min(o.CacheLimit, maxHostCache)
			}
		}
		for which, value := range map[int32]int64{limitBudget: o.Budget, limitCache: o.CacheLimit} {
			if failed := cLimit(which, value); failed != "" {
				return fmt.Errorf("starting the engine: %s", failed)
			}
		}
		if !gpu {
			machine.DeprioritizeMonitor()
		}
		return t.SetCPU(o.CPU)
	})
}

// Check loads an engine and verifies its versions. It does not unload it: it is meant for the end of an installation,
// in a process that opens no other engine.
func Check(e *engine.Engine) error {
	if !haveCgo {
		return ErrNoCgo
	}
	return load(e)
}

func load(e *engine.Engine) error {
	if err := setDefaults(e); err != nil {
		return fmt.Errorf("loading the engine in %s: %w", e.Dir, err)
	}
	if failed := cLoad(e.Lib, e.Bridge); failed != "" {
		return fmt.Errorf("loading the engine in %s: %s: %w", e.Dir, failed, engine.ErrLoad)
	}
	if abi := cABI(); abi != bridge.ABI {
		return fmt.Errorf("the bridge %s has interface %#x, this program needs %#x: run `ingot engine install`: %w",
			e.Bridge, abi, uint32(bridge.ABI), ErrVersion)
	}
	// A libmlx of another version than the bridge's headers would corrupt memory.
	if v := cVersion(); v != engine.Version {
		return fmt.Errorf("%s is MLX %s, this program needs %s: %w", e.Lib, v, engine.Version, ErrVersion)
	}
	return nil
}

// setDefaults sets MLX's environment variables that the user has not set. MLX reads each when it first needs it.
func setDefaults(e *engine.Engine) error {
	for name, value := range map[string]string{
		// By default, GPUs multiply float32 matrices in TF32, which rounds them to 10 bits of mantissa:
		// https://ml-explore.github.io/mlx/build/html/usage/precision.html. We promise float32.
		"MLX_ENABLE_TF32": "0",
		// CUDA kernels that are compiled at run time. MLX's default is a folder in /tmp that all users share, where one
		// could plant code that another runs.
		"MLX_PTX_CACHE_DIR": e.Kernels,
	} {
		if _, set := os.LookupEnv(name); set || value == "" {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// Info describes the loaded engine.
func (t *Thread) Info() Info { return t.info }

func keyValues(text string) map[string]string {
	m := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		if k, v, ok := strings.Cut(line, "="); ok {
			m[k] = v
		}
	}
	return m
}

// Available returns ErrNoCgo if this program cannot load any engine. Call it before installing one.
func Available() error {
	if !haveCgo {
		return ErrNoCgo
	}
	return nil
}
