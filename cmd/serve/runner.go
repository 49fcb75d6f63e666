package serve

import (
	"context"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
	"github.com/ingotml/ingot/runtime/runner"
	"github.com/spf13/cobra"
)

// defaultCacheDisk limits the prefix cache on disk, in bytes.
const defaultCacheDisk = 16 << 30

// runnerCommand is the child process of a served model; see package runner.
func runnerCommand(a *cli.App) *cobra.Command {
	var o runtime.Options
	var cpu engines.CPUFlags
	var draft string
	var kv engines.KVFlag
	var distributed bool
	var workers workersFlag
	var way parallelFlags
	c := &cobra.Command{
		Use:    "runner NAME[@DIGEST]",
		Short:  "Run a model for a parent process over stdin and stdout",
		Args:   cli.Between(1, 1),
		Hidden: true,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if o.KV, err = kv.Value(); err != nil {
				return err
			}
			d, err := runtime.ParseDraft(draft)
			if err != nil {
				return cli.Usagef("--draft: %v", err)
			}
			o.Draft.Off = d.Mode == runtime.DraftOff
			out, err := runner.Stdout()
			if err != nil {
				return err
			}
			return runner.Serve(c.Context(), a.In, out, func(ctx context.Context, loaded func(float64)) (runtime.Engine, error) {
				store, entry, err := openImage(ctx, args[0])
				if err != nil {
					return nil, err
				}
				o.Loaded, o.Log = loaded, a.Note
				if len(workers.list) > 0 {
					return openOnWorkers(ctx, a, workers, way, store, entry, cpu, o)
				}
				thread, err := engines.Open(ctx, a, cpu)
				if err != nil {
					return nil, err
				}
				if distributed {
					l, err := readLauncher()
					if err != nil {
						return nil, err
					}
					return openLeader(ctx, l, thread, store, entry, cpu, way, o)
				}
				model, err := batch.Open(ctx, thread, store, entry, o)
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
	f.Int64Var(&o.PrefixCache, "cache-size", -1, "prefix cache in bytes; 0: off (default 1/4 of free memory)")
	f.StringVar(&o.PrefixDir, "cache-dir", "", "folder of the prefix cache on disk (default none)")
	f.Int64Var(&o.PrefixDisk, "cache-disk", defaultCacheDisk, "limit of the prefix cache on disk in bytes")
	f.Int64Var(&o.Memory, "memory", 0, "KV cache limit in bytes; below 0 none (default free memory)")
	f.IntVar(&o.Sequences, "num-parallel", 0, "maximum number of running requests (default 32)")
	f.StringVar(&draft, "draft", "auto", "off loads no draft model; otherwise requests set the depth")
	f.DurationVar(&o.MaxGap, "max-gap", 0, "longest `time` between tokens during prefill (default 150ms)")
	f.IntVar(&o.Queue, "queue", 0, "maximum number of waiting requests (default 512)")
	f.BoolVar(&distributed, "distributed", false, "lead the ranks that a launcher has started")
	workers.add(c)
	way.add(c)
	kv.Add(c)
	cpu.Add(c)
	return c
}

// openImage opens the image of a name. If the name has a digest, the parent process has found the image, and the name
// may stand for another one by now.
func openImage(ctx context.Context, arg string) (*store.Store, *store.Entry, error) {
	name, err := manifest.ParseName(arg)
	if err != nil {
		return nil, nil, err
	}
	st, err := store.Open("")
	if err != nil {
		return nil, nil, err
	}
	d := name.Digest
	if d == "" {
		entry, err := st.Resolve(ctx, name)
		return st, entry, err
	}
	name.Digest = ""
	entry, err := st.ReadEntry(name, d)
	return st, entry, err
}
