package engines

import (
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/spf13/cobra"
)

// CPUFlags are the settings of the CPU kernels, for commands that use the engine.
type CPUFlags struct {
	Math    string
	Threads int
}

// Add adds the flags.
func (o *CPUFlags) Add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.Math, "cpu-math", "", "CPU math: exact or fast (default $"+mlx.EnvCPUMath+" or exact)")
	f.IntVar(&o.Threads, "threads", 0, "CPU threads (default $"+mlx.EnvCPUThreads+" or one per core)")
}

// Options returns the settings of the environment, overridden by the flags.
func (o CPUFlags) Options() (mlx.CPUOptions, error) {
	cpu, err := mlx.CPUFromEnv()
	if err != nil {
		return cpu, cli.Usagef("%v", err)
	}
	if o.Math != "" {
		if cpu.Fast, err = mlx.ParseCPUMath(o.Math); err != nil {
			return cpu, cli.Usagef("--cpu-math: %v", err)
		}
	}
	if o.Threads < 0 {
		return cpu, cli.Usagef("--threads %d must not be negative", o.Threads)
	}
	if o.Threads > 0 {
		cpu.Threads = o.Threads
	}
	return cpu, nil
}

// KVFlag is the number format of KV caches, for commands that run a model.
type KVFlag string

// Add adds the flag.
func (o *KVFlag) Add(c *cobra.Command) {
	c.Flags().StringVar((*string)(o), "kv-type", "auto", "KV cache `type`: auto (as computed), q8 or q4")
}

// Value returns the type, or wrong usage.
func (o KVFlag) Value() (runtime.KVType, error) {
	t, err := runtime.ParseKVType(string(o))
	if err != nil {
		return "", cli.Usagef("--kv-type: %v", err)
	}
	return t, nil
}
