package mlx

import (
	"fmt"
	"time"
)

// Group is a rank of a group of ranks that compute together, each with a part of a model's weights. Its operations are
// part of the graph, as others are. All ranks must evaluate the same ones in the same order. If one fails or makes no
// progress, the group has ended, and all later operations fail; whoever has the group closes it and forms another one.
type Group struct {
	t          *Thread
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

// DefaultGroupLimit is longer than a step of the slowest rank takes, and leaves time to report the failure of a rank
// within 10 seconds.
const DefaultGroupLimit = 8 * time.Second

// Join makes the thread a rank of a group. It waits for the other ranks if the backend does. Call it inside Do.
func (t *Thread) Join(o GroupOptions) (*Group, error) {
	limit := o.Limit
	if limit == 0 {
		limit = DefaultGroupLimit
	}
	group, failed := cGroupJoin(o.Backend, o.Name, o.Rank, o.Size, limit.Milliseconds())
	if failed != "" {
		return nil, fmt.Errorf("joining a group of ranks by backend %q: %s", o.Backend, failed)
	}
	return &Group{t: t, index: int(group[0]), rank: int(group[1]), size: int(group[2])}, nil
}

// Rank returns the number of this rank, from 0.
func (g *Group) Rank() int { return g.rank }

// Size returns the number of ranks.
func (g *Group) Size() int { return g.size }

// Close leaves the group. Ranks that wait for this one fail.
func (g *Group) Close() { cGroupLeave(int32(g.index)) }

// AllSum returns the sum of the ranks' arrays, which are float32 of one shape. All ranks get equal bits.
func (g *Group) AllSum(x *Array) *Array { return allSum(x, g.index) }

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
