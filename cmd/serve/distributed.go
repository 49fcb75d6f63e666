package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

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

// launched is what a launcher of ranks tells each process in the environment.
type launched struct {
	backend    string // of MLX's groups
	rank, size int
	host       string // address of rank 0 that the others reach; empty: not known
}

// launchers are the variables with rank and size that launchers of MPI programs set: Open MPI's mpirun, and Slurm's
// srun.
var launchers = [][2]string{
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"SLURM_PROCID", "SLURM_NTASKS"},
}

// readLauncher reads the environment of a launcher.
func readLauncher(getenv func(string) string) (launched, error) {
	if text := getenv("MLX_RANK"); text != "" && getenv("MLX_HOSTFILE") != "" {
		return readRing(text, getenv("MLX_HOSTFILE"))
	}
	for _, names := range launchers {
		rank, size := getenv(names[0]), getenv(names[1])
		if rank == "" || size == "" {
			continue
		}
		l := launched{backend: "mpi"}
		var err error
		if l.rank, err = strconv.Atoi(rank); err == nil {
			l.size, err = strconv.Atoi(size)
		}
		if err != nil || l.rank < 0 || l.rank >= l.size {
			return l, cli.Usagef("%s is %q and %s is %q: not a rank of a group", names[0], rank, names[1], size)
		}
		return l, nil
	}
	return launched{}, cli.Usagef("--distributed needs a launcher that starts the ranks: mlx.launch, mpirun or srun")
}

// readRing reads a file of the ring: a JSON list with the addresses of each rank.
func readRing(rank, path string) (l launched, err error) {
	l.backend = "ring"
	b, err := os.ReadFile(path)
	if err != nil {
		return l, fmt.Errorf("MLX_HOSTFILE: %w", err)
	}
	var hosts [][]string
	if err := json.Unmarshal(b, &hosts); err != nil {
		return l, cli.Usagef(`MLX_HOSTFILE: %s is not a list of the addresses of each rank, [["IP:PORT"], ...]: %v`, path,
			err)
	}
	l.size = len(hosts)
	if l.rank, err = strconv.Atoi(rank); err != nil || l.rank < 0 || l.rank >= l.size {
		return l, cli.Usagef("MLX_RANK is %q, and %s has %d ranks", rank, path, l.size)
	}
	if len(hosts[0]) > 0 {
		if host, _, err := net.SplitHostPort(hosts[0][0]); err == nil {
			l.host = host
		}
	}
	return l, nil
}

// joined is a rank of a launcher's group.
type joined struct {
	group    *mlx.Group
	conns    []net.Conn // for commands: on rank 0 to each other rank, on others to rank 0
	machines []ranks.Machine
}

// enter joins the group of a backend, or sets the limit of its operations if this rank is in it already.
func (j *joined) enter(ctx context.Context, t *mlx.Thread, backend string, stages []int) error {
	return t.Do(ctx, func() (err error) {
		j.group, err = t.Join(mlx.GroupOptions{Backend: backend, Limit: groupLimit(stages)})
		return err
	})
}

// pipelineLimit is how long a rank of a pipeline may wait in an operation: until all ranks before it have computed a
// step. A rank that has ended, stopped or lost its network is noticed sooner, by the connection for commands.
const pipelineLimit = 2 * time.Minute

// groupLimit returns the limit of a group's operations; 0 is the engine's.
func groupLimit(stages []int) time.Duration {
	if stages == nil {
		return 0
	}
	return pipelineLimit
}

func (j joined) close() {
	for _, c := range j.conns {
		c.Close()
	}
}

// join makes the engine a rank of the launcher's group, and connects it with the others.
func (l launched) join(ctx context.Context, t *mlx.Thread) (j joined, err error) {
	if l.backend == "mpi" && os.Getenv("MLX_MPI_LIBNAME") == "" {
		_ = os.Setenv("MLX_MPI_LIBNAME", "libmpi.so.40") // Open MPI's; the bare name is in packages for developers
	}
	if err := j.enter(ctx, t, l.backend, nil); err != nil {
		return j, err
	}
	if g := j.group; g.Rank() != l.rank || g.Size() != l.size {
		return j, fmt.Errorf("the launcher says that this is rank %d of %d, the group rank %d of %d", l.rank, l.size,
			g.Rank(), g.Size())
	}
	if j.machines, err = ranks.Survey(ctx, t, j.group); err == nil {
		j.conns, err = ranks.Meet(ctx, t, j.group, l.host)
	}
	return j, err
}

// follow runs a rank other than 0 until rank 0 ends the group.
func follow(ctx context.Context, a *cli.App, l launched, st *store.Store, stored string, o serveOptions) error {
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
	j, err := l.join(ctx, thread)
	if err != nil {
		return err
	}
	a.Note("rank %d of %d has joined the group", l.rank, l.size)
	f := processor.Files{Store: st, Image: entry.Image}
	err = ranks.Follow(ctx, j.conns[0], programVersion(), func(ctx context.Context, s ranks.Start) (*load.Model, error) {
		own, err := ownStart(entry, thread, o)
		if err != nil {
			return nil, err
		}
		own.Rank, own.Size, own.Options.Stages = l.rank, l.size, s.Options.Stages // rank 0 plans these
		if !reflect.DeepEqual(s, own) {
			return nil, fmt.Errorf("rank 0 runs %s, this rank %s: start all ranks with the same command and files",
				described(s), described(own))
		}
		if s.Options.Stages != nil {
			if err := j.enter(ctx, thread, l.backend, s.Options.Stages); err != nil {
				return nil, err
			}
		}
		m, err := load.OpenRank(ctx, thread, j.group, f, f.Processor, s.Options.Load())
		if err == nil {
			a.Note("rank %d of %d is ready", l.rank, l.size)
		}
		return m, err
	})
	if ctx.Err() != nil {
		return nil // stopped by a signal, as the launcher does
	}
	if err == nil {
		err = j.group.Finish()
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
func (l launched) openLeader(ctx context.Context, t *mlx.Thread, st *store.Store, e *store.Entry, cpu engines.CPUFlags,
	way parallelFlags, o runtime.Options) (runtime.Engine, error) {
	math, err := cpu.Options()
	if err != nil {
		return nil, err
	}
	j, err := l.join(ctx, t)
	if err != nil {
		return nil, err
	}
	plan, err := way.plan(st, e, surveyed(j.machines), fit.Use{Float32s: o.Float32, KV: o.KV})
	if err != nil {
		j.close()
		return nil, err
	}
	if o.Stages = plan.Stages; o.Stages != nil {
		if err := j.enter(ctx, t, l.backend, o.Stages); err != nil {
			j.close()
			return nil, err
		}
	}
	leader := ranks.Lead(j.conns, groupStart(e, t, math, o))
	engine, err := batch.OpenRanks(ctx, t, j.group, leader, st, e, processor.Files{Store: st, Image: e.Image}.Processor, o)
	if err != nil {
		return nil, err
	}
	return &launchedEngine{engine, j.group}, nil
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
func distribute(ctx context.Context, opts *server.Options, l launched, stored string) error {
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
			return l.size
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
