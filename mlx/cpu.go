package mlx

import (
	"fmt"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// The environment variables that CPUFromEnv reads.
const (
	EnvCPUThreads = "INGOT_CPU_THREADS"
	EnvCPUMath    = "INGOT_CPU_MATH"
	EnvCPUISA     = "INGOT_CPU_ISA"
)

// CPUOptions are how kernels run on a CPU. The zero value is what most callers want. On a GPU they change nothing.
type CPUOptions struct {
	Threads int    // that work on one operation; 0 is DefaultThreads
	Fast    bool   // int8 activations in products with quantized weights, bfloat16 weights in attention: quicker, less exact
	ISA     string // portable, avx2, avx512, avx512bf16, zen4, neon or dotprod; "" is the best that the processor has
}

// ParseCPUMath reads the name of a precision: exact, or fast.
func ParseCPUMath(name string) (fast bool, err error) {
	switch name {
	case "exact", "":
		return false, nil
	case "fast":
		return true, nil
	}
	return false, fmt.Errorf("unknown CPU math %q: exact or fast", name)
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
			return o, fmt.Errorf("%s is %q, not a number of threads", EnvCPUThreads, v)
		}
	}
	return o, nil
}

// maxThreads bounds what a setting may ask for.
const maxThreads = 1024

// SetCPU changes how kernels run, from the next operation on. It must run inside Do.
func (t *Thread) SetCPU(o CPUOptions) error {
	threads := o.Threads
	if threads <= 0 {
		threads = DefaultThreads()
	}
	if threads > maxThreads {
		return fmt.Errorf("%d threads are more than %d", threads, maxThreads)
	}
	if failed := cCPUSet(threads, o.Fast, o.ISA); failed != "" {
		return fmt.Errorf("setting up the CPU: %s", failed)
	}
	return nil
}

// CPUReport tells how kernels run, and what they have done since the last report.
type CPUReport struct {
	Threads int
	Fast    bool
	ISA     string
	Nodes   map[string]NodeTime // by the name of the kind of node
}

// NodeTime is what one kind of node has taken.
type NodeTime struct {
	Calls int64
	Time  time.Duration // inside the kernels
}

// CPU reports on the kernels and begins a new count. It must run inside Do.
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

// DefaultThreads is one for each physical core that this process may run on, and no more than its cgroup's share of
// processor time.
func DefaultThreads() int {
	n := physicalCores(allowedCPUs(), os.ReadFile)
	if q := cpuQuota(os.ReadFile); q > 0 {
		n = min(n, max(1, int(math.Ceil(q))))
	}
	return n
}

// physicalCores counts cores, of which several CPUs may be threads.
func physicalCores(cpus []int, read func(string) ([]byte, error)) int {
	cores := map[string]bool{}
	for _, cpu := range cpus {
		b, err := read(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
		if err != nil {
			return len(cpus)
		}
		cores[string(b)] = true
	}
	return len(cores)
}

// cpuQuota is the least share of processor time that this process's cgroup and those above it have, in CPUs; 0 is no
// limit.
func cpuQuota(read func(string) ([]byte, error)) float64 {
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil {
			return 0
		}
		return v
	}
	least := 0.0
	for _, d := range cgroups(read, "cpu") {
		var quota, period float64
		if d.v1 {
			q, _ := read(path.Join(d.dir, "cpu.cfs_quota_us"))
			p, _ := read(path.Join(d.dir, "cpu.cfs_period_us"))
			quota, period = number(string(q)), number(string(p))
		} else {
			b, _ := read(path.Join(d.dir, "cpu.max"))
			if f := strings.Fields(string(b)); len(f) == 2 {
				quota, period = number(f[0]), number(f[1]) // "max" is no number and no limit
			}
		}
		if quota > 0 && period > 0 && (least == 0 || quota/period < least) {
			least = quota / period
		}
	}
	return least
}
