package mlx

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ingotml/ingot/mlx/machine"
)

// The environment variables that CPUFromEnv reads.
const (
	EnvCPUThreads = "INGOT_CPU_THREADS"
	EnvCPUMath    = "INGOT_CPU_MATH"
	EnvCPUISA     = "INGOT_CPU_ISA"
)

// CPUOptions configures the CPU kernels. The zero value suits most callers. They have no effect on a GPU.
type CPUOptions struct {
	Threads int    // per operation; 0 means DefaultThreads
	Fast    bool   // faster, less exact: int8 activations in quantized products, bfloat16 weights in attention
	ISA     string // portable, avx2, avx512, avx512vbmi, avx512bf16, zen4 or neon; "" means the best available
}

// ParseCPUMath parses the name of a precision, exact or fast. The empty name means exact.
func ParseCPUMath(name string) (fast bool, err error) {
	switch name {
	case "exact", "":
		return false, nil
	case "fast":
		return true, nil
	}
	return false, fmt.Errorf("unknown CPU math %q: must be exact or fast", name)
}

// CPUFromEnv reads INGOT_CPU_THREADS, INGOT_CPU_MATH and INGOT_CPU_ISA.
func CPUFromEnv() (CPUOptions, error) {
	o := CPUOptions{ISA: os.Getenv(EnvCPUISA)}
	var err error
	if o.Fast, err = ParseCPUMath(os.Getenv(EnvCPUMath)); err != nil {
		return o, fmt.Errorf("%s: %w", EnvCPUMath, err)
	}
	if v := os.Getenv(EnvCPUThreads); v != "" {
		if o.Threads, err = strconv.Atoi(v); err != nil || o.Threads < 0 {
			return o, fmt.Errorf("%s: %q is not a number of threads", EnvCPUThreads, v)
		}
	}
	return o, nil
}

// maxThreads is the largest number of threads that can be configured.
const maxThreads = 1024

// SetCPU configures the kernels, starting with the next operation. Call it inside Do.
func (t *Thread) SetCPU(o CPUOptions) error {
	threads := o.Threads
	if threads <= 0 {
		threads = DefaultThreads()
	}
	if threads > maxThreads {
		return fmt.Errorf("%d CPU threads: must be at most %d", threads, maxThreads)
	}
	if failed := cCPUSet(threads, o.Fast, o.ISA); failed != "" {
		return fmt.Errorf("setting up the CPU: %s", failed)
	}
	return nil
}

// CPUReport describes how the kernels run and the work they have done since the last report.
type CPUReport struct {
	Threads int
	Fast    bool
	ISA     string
	Nodes   map[string]NodeTime // by kind of node
}

// NodeTime is the work done by one kind of node.
type NodeTime struct {
	Calls int64
	Time  time.Duration // inside the kernels
}

// CPU reports on the kernels and resets the counters. Call it inside Do.
func (t *Thread) CPU() CPUReport {
	r := CPUReport{Nodes: map[string]NodeTime{}}
	for _, line := range strings.Split(cCPUReport(), "\n") {
		f := strings.Fields(line)
		switch {
		case len(f) == 2 && f[0] == "isa":
			r.ISA = f[1]
		case len(f) == 2 && f[0] == "threads":
			r.Threads, _ = strconv.Atoi(f[1])
		case len(f) == 2 && f[0] == "math":
			r.Fast = f[1] == "fast"
		case len(f) == 3:
			calls, _ := strconv.ParseInt(f[1], 10, 64)
			ns, _ := strconv.ParseInt(f[2], 10, 64)
			r.Nodes[f[0]] = NodeTime{calls, time.Duration(ns)}
		}
	}
	return r
}

// DefaultThreads returns the number of physical cores that this process may use.
func DefaultThreads() int { return machine.Cores() }
