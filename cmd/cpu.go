package cmd

import (
	"github.com/ingotml/ingot/mlx"
	"github.com/spf13/cobra"
)

// cpuFlags are the settings of the CPU kernels, for commands that compute.
type cpuFlags struct {
	math    string
	threads int
}

func (o *cpuFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.math, "cpu-math", "", "on a CPU: exact, or fast with 8-bit activations (default exact, or $"+mlx.EnvCPUMath+")")
	f.IntVar(&o.threads, "threads", 0, "on a CPU: threads to compute with (default one for each core that is allowed, or $"+mlx.EnvCPUThreads+")")
}

// options are the flags over the environment.
func (o cpuFlags) options() (mlx.CPUOptions, error) {
	cpu, err := mlx.CPUFromEnv()
	if err != nil {
		return cpu, usagef("%v", err)
	}
	if o.math != "" {
		if cpu.Fast, err = mlx.ParseCPUMath(o.math); err != nil {
			return cpu, usagef("--cpu-math: %v", err)
		}
	}
	if o.threads < 0 {
		return cpu, usagef("--threads is %d", o.threads)
	}
	if o.threads > 0 {
		cpu.Threads = o.threads
	}
	return cpu, nil
}
