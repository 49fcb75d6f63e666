package mlx

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// Group is a rank of a group of ranks that compute together, each with a part of a model's weights. Its operations are
// part of the graph, as others are. All ranks must evaluate the same ones in the same order. If one fails or makes no
// progress, the group has ended, and all later operations fail; whoever has the group closes it and forms another one.
type Group struct {
	t          *Thread
	backend    string
	index      int
	rank, size int
}

// GroupOptions configures Join.
type GroupOptions struct {
	// Backend is one of MLX's ("mpi", "ring", "nccl", "jaccl"), whose parameters are in the environment, or LocalBackend.
	Backend string
	// Of LocalBackend: ranks with equal names meet, each on an engine thread of its own; see Thread.Fork.
	Name       string
	Rank, Size int
	// Limit is the time that an operation may take, including the wait for other ranks; 0 means DefaultGroupLimit.
	Limit time.Duration
}

// LocalBackend connects engine threads of one process.
const LocalBackend = "local"

const mpi = "mpi"

// DefaultGroupLimit is longer than a step of the slowest rank takes, and leaves time to report the failure of a rank
// within 10 seconds.
const DefaultGroupLimit = 8 * time.Second

// Join makes the thread a rank of a group. It waits for the other ranks if the backend does. Call it inside Do.
func (t *Thread) Join(o GroupOptions) (*Group, error) {
	if o.Backend == mpi && mpiEnded.Load() {
		return nil, errors.New("joining a group of ranks: this process has ended MPI, which cannot begin again")
	}
	limit := o.Limit
	if limit == 0 {
		limit = DefaultGroupLimit
	}
	group, failed := cGroupJoin(o.Backend, o.Name, o.Rank, o.Size, limit.Milliseconds())
	if failed != "" {
		return nil, fmt.Errorf("joining a group of ranks by backend %q: %s", o.Backend, failed)
	}
	return &Group{t, o.Backend, int(group[0]), int(group[1]), int(group[2])}, nil
}

// Rank returns the number of this rank, from 0.
func (g *Group) Rank() int { return g.rank }

// Size returns the number of ranks.
func (g *Group) Size() int { return g.size }

// finishLimit is how long Finish waits for the other ranks.
const finishLimit = 5 * time.Second

// mpiEnded says that Finish has ended MPI in this process.
var mpiEnded atomic.Bool

// Finish ends the group in good order: all ranks call it after their last operation. Only MPI needs that, because to
// mpirun a process that ends without MPI_Finalize has failed; the process cannot use MPI afterwards. Finish waits for
// the other ranks, at most five seconds. A group that has failed has no good order.
func (g *Group) Finish() error {
	// MLX finishes MPI when exit destroys its groups. A Go program on Linux ends without exit.
	if g.backend != mpi || runtime.GOOS != "linux" || mpiEnded.Swap(true) {
		return nil
	}
	code := make(chan int, 1)
	go func() { code <- cEndMPI() }()
	select {
	case c := <-code:
		if c != 0 {
			return fmt.Errorf("MPI_Finalize failed with the code %d", c)
		}
		return nil
	case <-time.After(finishLimit):
		return fmt.Errorf("MPI_Finalize has waited for the other ranks for %v", finishLimit)
	}
}

// Close leaves the group. Ranks that wait for this one fail.
func (g *Group) Close() { cGroupLeave(int32(g.index)) }

// AllSum returns the sum of the ranks' arrays, which are float32 of one shape, rounded to the type d: Float32, Float16
// or BFloat16. All ranks get equal bits.
func (g *Group) AllSum(x *Array, d DType) *Array { return allSum(x, g.index, d) }

// Broadcast returns the float32 array of the rank root on all ranks. The others' arrays give the shape.
func (g *Group) Broadcast(x *Array, root int) *Array { return broadcastFrom(x, g.index, root) }

// AllGather returns the ranks' arrays joined along the last axis, whose lengths on each rank are widths. The other axes
// are equal.
func (g *Group) AllGather(x *Array, widths ...int) *Array { return allGather(x, g.index, widths...) }

// Send sends x to another rank, which calls Receive. It returns x; the transfer is complete when that is computed. Some
// backends connect neighbours only.
func (g *Group) Send(x *Array, to int) *Array { return sent(x, g.index, to) }

// Receive returns an array that another rank sends.
func (g *Group) Receive(from int, d DType, shape ...int) *Array {
	return received(g.t, g.index, from, d, shape...)
}
