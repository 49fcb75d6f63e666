package cmd

import (
	"github.com/ingotml/ingot/mlx"
	"github.com/spf13/cobra"
)

// cpuFlags are the settings of the CPU kernels, for commands that use the engine.
type cpuFlags struct {
	math    string
	threads int
}

func (o *cpuFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.math, "cpu-math", "", "CPU math: exact or fast (default $"+mlx.EnvCPUMath+" or exact)")
	f.IntVar(&o.threads, "threads", 0, "CPU threads (default $"+mlx.EnvCPUThreads+" or one per core)")
}

// options returns the settings of the environment, overridden by the flags.
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
		return cpu, usagef("--threads %d must not be negative", o.threads)
	}
	if o.threads > 0 {
		cpu.Threads = o.threads
	}
	return cpu, nil
}
