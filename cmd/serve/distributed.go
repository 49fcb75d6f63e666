package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync/atomic"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
	"github.com/ingotml/ingot/runtime/fit"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/runtime/ranks"
	"github.com/ingotml/ingot/server"
)

// readLauncher reads the environment of the launcher that started this rank.
func readLauncher() (ranks.Launched, error) {
	l, err := ranks.ReadLauncher(os.Getenv)
	var wrong *ranks.LauncherError
	if errors.As(err, &wrong) {
		return l, cli.Usagef("%v", wrong)
	}
	return l, err
}

// follow runs a rank other than 0 until rank 0 ends the group.
func follow(ctx context.Context, a *cli.App, l ranks.Launched, st *store.Store, stored string, o serveOptions) error {
	name, err := models.ParseName(stored)
	if err != nil {
		return err
	}
	entry, err := st.Resolve(ctx, name)
	if err != nil {
		return err
	}
	thread, err := engines.Open(ctx, a, o.cpu)
	if err != nil {
		return err
	}
	j, err := l.Join(ctx, thread)
	if err != nil {
		return err
	}
	a.Note("rank %d of %d has joined the group", l.Rank, l.Size)
	f := processor.Files{Store: st, Image: entry.Image}
	err = ranks.Follow(ctx, j.Conns[0], programVersion(), func(ctx context.Context, s ranks.Start) (*load.Model, error) {
		own, err := ownStart(entry, thread, o)
		if err != nil {
			return nil, err
		}
		own.Rank, own.Size, own.Options.Stages = l.Rank, l.Size, s.Options.Stages // rank 0 plans these
		if !reflect.DeepEqual(s, own) {
			return nil, fmt.Errorf("rank 0 runs %s, this rank %s: start all ranks with the same command and files",
				described(s), described(own))
		}
		if s.Options.Stages != nil {
			if err := j.Enter(ctx, thread, l.Backend, s.Options.Stages); err != nil {
				return nil, err
			}
		}
		m, err := load.OpenRank(ctx, thread, j.Group, f, f.Processor, s.Options.Load())
		if err == nil {
			a.Note("rank %d of %d is ready", l.Rank, l.Size)
		}
		return m, err
	})
	if ctx.Err() != nil {
		return nil // stopped by a signal, as the launcher does
	}
	if err == nil {
		err = j.Group.Finish()
	}
	return err
}

// described says what a group runs.
func described(s ranks.Start) string {
	o := s.Options
	return fmt.Sprintf("%s (%s, MLX %s, float32 %v, KV cache %s, draft off %v, fast math %v)", s.Name, s.Image, s.Engine,
		o.Float32, o.KV, o.DraftOff, o.FastMath)
}

// groupStart describes what the ranks of a group run.
func groupStart(e *store.Entry, t *mlx.Thread, cpu mlx.CPUOptions, o runtime.Options) ranks.Start {
	name := e.Name
	name.Digest = ""
	return ranks.Start{
		Program: programVersion(), Engine: t.Info().Version, Name: name.String(), Image: e.Digest,
		Options: ranks.Options{Float32: o.Float32, KV: o.KV, DraftOff: o.Draft.Off, FastMath: cpu.Fast, Stages: o.Stages},
	}
}

// ownStart is groupStart with the options of `serve`.
func ownStart(e *store.Entry, t *mlx.Thread, o serveOptions) (s ranks.Start, err error) {
	cpu, err := o.cpu.Options()
	if err != nil {
		return s, err
	}
	kv, err := o.kv.Value()
	if err != nil {
		return s, err
	}
	d, err := runtime.ParseDraft(o.draft)
	load := runtime.Options{Float32: o.float32, KV: kv}
	load.Draft.Off = d.Mode == runtime.DraftOff
	return groupStart(e, t, cpu, load), err
}

// openLeader opens the model as rank 0 of the launcher's group.
func openLeader(
	ctx context.Context, l ranks.Launched, t *mlx.Thread, st *store.Store, e *store.Entry, cpu engines.CPUFlags,
	way parallelFlags, o runtime.Options,
) (runtime.Engine, error) {
	math, err := cpu.Options()
	if err != nil {
		return nil, err
	}
	j, err := l.Join(ctx, t)
	if err != nil {
		return nil, err
	}
	plan, err := way.plan(st, e, surveyed(j.Machines), fit.Use{Float32s: o.Float32, KV: o.KV})
	if err != nil {
		j.Close()
		return nil, err
	}
	if o.Stages = plan.Stages; o.Stages != nil {
		if err := j.Enter(ctx, t, l.Backend, o.Stages); err != nil {
			j.Close()
			return nil, err
		}
	}
	leader := ranks.Lead(j.Conns, groupStart(e, t, math, o))
	engine, err := batch.OpenRanks(ctx, t, j.Group, leader, st, e, processor.Files{Store: st, Image: e.Image}.Processor, o)
	if err != nil {
		return nil, err
	}
	return &launchedEngine{engine, j.Group}, nil
}

// launchedEngine is rank 0 of a launcher's group.
type launchedEngine struct {
	*batch.Engine
	group *mlx.Group
}

// Close implements runtime.Engine.
func (e *launchedEngine) Close() error {
	failed := e.Err()
	err := e.Engine.Close()
	if failed == nil {
		err = errors.Join(err, e.group.Finish())
	}
	return err
}

// errOnce says that a launcher's group cannot be formed again.
var errOnce = fmt.Errorf("%w, and its launcher cannot form it again; "+
	"stop all ranks, this server too, and start them again", runtime.ErrRanks)

// distribute makes the server load a model over the launcher's ranks, once.
func distribute(ctx context.Context, opts *server.Options, l ranks.Launched, stored string) error {
	name, err := models.ParseName(stored)
	if err != nil {
		return err
	}
	entry, err := opts.Store.Resolve(ctx, name)
	if err != nil {
		return err
	}
	opts.Ranks = func(e *store.Entry) int {
		if e.Digest == entry.Digest && e.Name == entry.Name {
			return l.Size
		}
		return 1
	}
	one := opts.Load
	var begun atomic.Bool
	opts.Load = func(ctx context.Context, c server.Child, loaded func(float64)) (pool.Model, error) {
		if c.Ranks > 1 && begun.Swap(true) {
			return nil, errOnce
		}
		return one(ctx, c, loaded)
	}
	return nil
}

// loadNow loads a model at the start.
func loadNow(ctx context.Context, s *server.Server, stored string) error {
	m, err := s.Find(ctx, stored)
	if err == nil {
		err = s.Load(ctx, m, nil)
	}
	return err
}
