package ranks

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/ingotml/ingot/mlx"
)

// Launched is what a launcher of ranks tells each process in the environment.
type Launched struct {
	Backend    string // of MLX's groups
	Rank, Size int
	Host       string // address of rank 0 that the others reach; empty: not known
}

// LauncherError says that the environment is not a launcher's.
type LauncherError struct{ message string }

// Error implements error.
func (e *LauncherError) Error() string { return e.message }

func launcherErrorf(format string, args ...any) error {
	return &LauncherError{fmt.Sprintf(format, args...)}
}

// launchers are the variables with rank and size that launchers of MPI programs set: Open MPI's mpirun, and Slurm's
// srun.
var launchers = [][2]string{
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"SLURM_PROCID", "SLURM_NTASKS"},
}

// ReadLauncher reads the environment of a launcher.
func ReadLauncher(getenv func(string) string) (Launched, error) {
	if text := getenv("MLX_RANK"); text != "" && getenv("MLX_HOSTFILE") != "" {
		return readRing(text, getenv("MLX_HOSTFILE"))
	}
	for _, names := range launchers {
		rank, size := getenv(names[0]), getenv(names[1])
		if rank == "" || size == "" {
			continue
		}
		l := Launched{Backend: "mpi"}
		var err error
		if l.Rank, err = strconv.Atoi(rank); err == nil {
			l.Size, err = strconv.Atoi(size)
		}
		if err != nil || l.Rank < 0 || l.Rank >= l.Size {
			return l, launcherErrorf("%s is %q and %s is %q: not a rank of a group", names[0], rank, names[1], size)
		}
		return l, nil
	}
	return Launched{}, launcherErrorf("--distributed needs a launcher that starts the ranks: mlx.launch, mpirun or srun")
}

// readRing reads a file of the ring: a JSON list with the addresses of each rank.
func readRing(rank, path string) (l Launched, err error) {
	l.Backend = "ring"
	b, err := os.ReadFile(path)
	if err != nil {
		return l, fmt.Errorf("MLX_HOSTFILE: %w", err)
	}
	var hosts [][]string
	if err := json.Unmarshal(b, &hosts); err != nil {
		return l, launcherErrorf(`MLX_HOSTFILE: %s is not a list of the addresses of each rank, [["IP:PORT"], ...]: %v`, path,
			err)
	}
	l.Size = len(hosts)
	if l.Rank, err = strconv.Atoi(rank); err != nil || l.Rank < 0 || l.Rank >= l.Size {
		return l, launcherErrorf("MLX_RANK is %q, and %s has %d ranks", rank, path, l.Size)
	}
	if len(hosts[0]) > 0 {
		if host, _, err := net.SplitHostPort(hosts[0][0]); err == nil {
			l.Host = host
		}
	}
	return l, nil
}

// Joined is a rank of a launcher's group.
type Joined struct {
	Group    *mlx.Group
	Conns    []net.Conn // for commands: on rank 0 to each other rank, on others to rank 0
	Machines []Machine
}

// Enter joins the group of a backend, or sets the limit of its operations if this rank is in it already.
func (j *Joined) Enter(ctx context.Context, t *mlx.Thread, backend string, stages []int) error {
	return t.Do(ctx, func() (err error) {
		j.Group, err = t.Join(mlx.GroupOptions{Backend: backend, Limit: GroupLimit(stages)})
		return err
	})
}

// pipelineLimit is how long a rank of a pipeline may wait in an operation: until all ranks before it have computed a
// step. A rank that has ended, stopped or lost its network is noticed sooner, by the connection for commands.
const pipelineLimit = 2 * time.Minute

// GroupLimit returns the limit of a group's operations; 0 is the engine's.
func GroupLimit(stages []int) time.Duration {
	if stages == nil {
		return 0
	}
	return pipelineLimit
}

// Close closes the connections.
func (j Joined) Close() {
	for _, c := range j.Conns {
		c.Close()
	}
}

// Join makes the engine a rank of the launcher's group, and connects it with the others.
func (l Launched) Join(ctx context.Context, t *mlx.Thread) (j Joined, err error) {
	if l.Backend == "mpi" && os.Getenv("MLX_MPI_LIBNAME") == "" {
		_ = os.Setenv("MLX_MPI_LIBNAME", "libmpi.so.40") // Open MPI's; the bare name is in packages for developers
	}
	if err := j.Enter(ctx, t, l.Backend, nil); err != nil {
		return j, err
	}
	if g := j.Group; g.Rank() != l.Rank || g.Size() != l.Size {
		return j, fmt.Errorf("the launcher says that this is rank %d of %d, the group rank %d of %d", l.Rank, l.Size,
			g.Rank(), g.Size())
	}
	if j.Machines, err = Survey(ctx, t, j.Group); err == nil {
		j.Conns, err = Meet(ctx, t, j.Group, l.Host)
	}
	return j, err
}
