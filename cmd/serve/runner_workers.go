package serve

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
	"github.com/ingotml/ingot/runtime/fit"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/runtime/ranks"
	"github.com/ingotml/ingot/worker"
)

// openOnWorkers loads a model of which this process and workers have a part each. When the group ends by a failure, the
// process ends, too: the next request starts another one, which forms another group.
func openOnWorkers(
	ctx context.Context, a *cli.App, w workersFlag, way parallelFlags, st *store.Store, entry *store.Entry,
	cpu engines.CPUFlags, o runtime.Options,
) (runtime.Engine, error) {
	addresses, token, err := w.read()
	if err != nil {
		return nil, err
	}
	math, err := cpu.Options()
	if err != nil {
		return nil, err
	}
	e, err := engines.Need(ctx, a)
	if err != nil {
		return nil, err
	}
	self := tunnelSelf(token, e)
	machines, err := askWorkers(ctx, addresses, self)
	if err != nil {
		return nil, err
	}
	plan, err := way.plan(st, entry, machines, fit.Use{Float32s: o.Float32, KV: o.KV})
	if err != nil {
		return nil, err
	}
	o.Stages = plan.Stages
	group, err := worker.Form(ctx, worker.FormOptions{
		Self: self, Workers: addresses, Store: st, Name: entry.Name.String(), Image: entry.Digest,
		Stages: plan.Stages, Log: a.Tell,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", runtime.ErrRanks, err)
	}
	thread, err := mlx.Open(e, mlx.Options{CPU: math})
	if err != nil {
		group.Close()
		return nil, err
	}
	leader := ranks.Lead(group.Conns, groupStart(entry, thread, math, o))
	g := &rankedEngine{group: group, leader: leader, addresses: addresses}
	opened := make(chan error, 1)
	go func() { // a ring that waits for a rank cannot be interrupted
		ring, err := joinRing(ctx, thread, group.Ring, o.Stages)
		if err == nil {
			files := processor.Files{Store: st, Image: entry.Image}
			g.Engine, err = batch.OpenRanks(ctx, thread, ring, leader, st, entry, files.Processor, o)
		}
		opened <- err
	}()
	select {
	case err = <-opened:
	case <-leader.Ended():
		err = leader.Err()
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		leader.End(err)
		group.Close()
		return nil, fmt.Errorf("%w (%s)", err, g.where())
	}
	go g.watch()
	return g, nil
}

// rankedEngine is rank 0 of a model that is divided over workers.
type rankedEngine struct {
	*batch.Engine
	group     *worker.Group
	leader    *ranks.Leader
	addresses []string
	closing   atomic.Bool
}

// where says which rank is on which worker.
func (g *rankedEngine) where() string {
	all := []string{"rank 0 is this machine"}
	for i, address := range g.addresses {
		all = append(all, fmt.Sprintf("rank %d is %s", i+1, address))
	}
	return strings.Join(all, ", ")
}

// failGrace is how long requests have to report that the group has ended before the process ends.
const failGrace = 500 * time.Millisecond

// watch ends the process when the group has failed.
func (g *rankedEngine) watch() {
	<-g.leader.Ended()
	if g.closing.Load() {
		return
	}
	g.group.Close()
	time.Sleep(failGrace)
	fmt.Fprintf(os.Stderr, "ingot: %v (%s)\n", g.leader.Err(), g.where())
	os.Exit(1)
}

// Usage implements runtime.Reporter.
func (g *rankedEngine) Usage(ctx context.Context) (runtime.Usage, error) {
	u, err := g.Engine.Usage(ctx)
	if err == nil {
		u.Ring = &runtime.RingUsage{Sent: g.group.Traffic.Sent(), Received: g.group.Traffic.Received()}
	}
	return u, err
}

// Close implements runtime.Engine.
func (g *rankedEngine) Close() error {
	g.closing.Store(true)
	err := g.Engine.Close()
	g.group.Close()
	return err
}
