package cmd

import (
	"context"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runner"
	"github.com/spf13/cobra"
)

// runnerCmd is the child process of a served model; see package runner.
func (a *app) runnerCmd() *cobra.Command {
	var o runtime.Options
	var cpu cpuFlags
	var draft string
	var kv kvFlag
	c := &cobra.Command{
		Use:    "runner NAME",
		Short:  "Run a model for a parent process, which talks to it over standard input and output",
		Args:   between(1, 1),
		Hidden: true,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if o.KV, err = kv.value(); err != nil {
				return err
			}
			d, err := runtime.ParseDraft(draft)
			if err != nil {
				return usagef("--draft: %v", err)
			}
			o.Draft.Off = d.Mode == runtime.DraftOff
			out, err := runner.Stdout()
			if err != nil {
				return err
			}
			return runner.Serve(c.Context(), a.in, out, func(ctx context.Context, loaded func(float64)) (runtime.Engine, error) {
				store, entry, err := resolve(c, args[0])
				if err != nil {
					return nil, err
				}
				thread, err := a.openEngine(ctx, cpu)
				if err != nil {
					return nil, err
				}
				o.Loaded = loaded
				model, err := runtime.Load(ctx, thread, store, entry, o)
				if err != nil {
					thread.Close()
					return nil, err
				}
				return withFault(model), nil
			})
		},
	}
	f := c.Flags()
	f.BoolVar(&o.Float32, "float32", false, "compute in float32")
	f.Int64Var(&o.PrefixCache, "cache-size", -1, "bytes of state kept of past requests; 0 keeps none (default a fourth of the memory that weights leave)")
	f.StringVar(&o.PrefixDir, "cache-dir", "", "folder for state that has no room in memory, also for later runs (default none)")
	f.Int64Var(&o.PrefixDisk, "cache-disk", 16<<30, "most bytes in that folder")
	f.Int64Var(&o.Memory, "memory", 0, "bytes of state that running requests may have together; below 0 no limit (default what the engine's memory leaves)")
	f.IntVar(&o.Sequences, "parallel", 0, "requests that run at once (default 32)")
	f.StringVar(&draft, "draft", "auto", "off loads no draft; else requests say how many tokens to draft")
	f.IntVar(&o.Queue, "queue", 0, "requests that wait beside them (default 512)")
	kv.add(c)
	cpu.add(c)
	return c
}
