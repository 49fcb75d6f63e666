// Package rank opens a process's rank of a model, for benchmarks that compare ranks. The environment says how the ranks
// reach each other, as for `ingot serve --distributed`, and how many threads a rank has.
package rank

import (
	"context"
	"fmt"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/engine"
	"github.com/ingotml/ingot/models/shard"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/processor"
)

// Rank is a rank of an image of a store.
type Rank struct {
	Files  processor.Files
	Thread *mlx.Thread
	Group  *mlx.Group // nil: the rank is alone
}

// Open starts an engine and joins the group of a backend; "" joins none. The caller closes the rank. The store "" is
// the user's own.
func Open(ctx context.Context, storeDir, image, backend string) (*Rank, error) {
	name, err := manifest.ParseName(image)
	if err != nil {
		return nil, err
	}
	s, err := store.OpenExisting(storeDir)
	if err != nil {
		return nil, err
	}
	entry, err := s.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	e, err := engine.Find(engine.Options{})
	if err != nil {
		return nil, fmt.Errorf("%w: run `ingot engine install`", err)
	}
	cpu, err := mlx.CPUFromEnv()
	if err != nil {
		return nil, err
	}
	r := &Rank{Files: processor.Files{Store: s, Image: entry.Image}}
	if r.Thread, err = mlx.Open(e, mlx.Options{CPU: cpu}); err != nil {
		return nil, err
	}
	if backend == "" {
		return r, nil
	}
	err = r.Thread.Do(ctx, func() (err error) {
		r.Group, err = r.Thread.Join(mlx.GroupOptions{Backend: backend, Limit: time.Minute})
		return err
	})
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Load loads the rank's part of the model without a draft: its layers by the stages, or without stages its parts of
// the tensors.
func (r *Rank) Load(ctx context.Context, stages shard.Stages) (*load.Model, error) {
	o := runtime.Options{Draft: runtime.DraftOptions{Off: true}, Stages: stages}
	return load.OpenRank(ctx, r.Thread, r.Group, r.Files, r.Files.Processor, o)
}

// Close stops the engine. Models must be closed before.
func (r *Rank) Close() { r.Thread.Close() }

// Communicates reports whether a kind of node of the engine's counters carries arrays between ranks that divide
// tensors.
func Communicates(node string) bool {
	return node == "all_sum" || node == "all_gather" || node == "broadcast"
}
