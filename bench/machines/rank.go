package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/engine"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/processor"
)

// measure loads this process's rank of the image, measures it and reports. It returns when all ranks have reported:
// mpirun ends the others when one has ended.
func measure(ctx context.Context, o options, report func(measurement) error) error {
	name, err := manifest.ParseName(o.image)
	if err != nil {
		return err
	}
	s, err := store.OpenExisting(o.store)
	if err != nil {
		return err
	}
	entry, err := s.Resolve(ctx, name)
	if err != nil {
		return err
	}
	e, err := engine.Find(engine.Options{})
	if err != nil {
		return fmt.Errorf("%w: run `ingot engine install`", err)
	}
	cpu, err := mlx.CPUFromEnv()
	if err != nil {
		return err
	}
	thread, err := mlx.Open(e, mlx.Options{CPU: cpu})
	if err != nil {
		return err
	}
	defer thread.Close()
	var ranks *mlx.Group
	if o.role != roleSingle {
		err = thread.Do(ctx, func() (err error) {
			ranks, err = thread.Join(mlx.GroupOptions{Backend: o.role, Limit: time.Minute})
			return err
		})
		if err != nil {
			return err
		}
	}
	f := processor.Files{Store: s, Image: entry.Image}
	noDraft := runtime.Options{Draft: runtime.DraftOptions{Off: true}}
	model, err := load.OpenRank(ctx, thread, ranks, f, f.Processor, noDraft)
	if err != nil {
		return err
	}
	err = model.Do(ctx, func() error {
		m := forward(model, o)
		thread.ClearCache() // as a model that has become idle does
		debug.FreeOSMemory()
		if m.RSS, err = residentBytes(); err != nil {
			return err
		}
		if err := report(m); err != nil || ranks == nil {
			return err
		}
		mlx.Eval(ranks.AllSum(mlx.Zeros(thread, mlx.Float32, 1)))
		return nil
	})
	return errors.Join(err, model.Close(nil))
}

// forward measures a prompt and greedy decoding after it.
func forward(model *load.Model, o options) (m measurement) {
	e := model.Thread
	m.Weights = model.Weights.Bytes()
	seq := cache.NewSequence(model.Kinds)
	defer seq.Free()
	r := models.NewRepeater(e, model.Target)
	defer r.Forget()
	next := func(tokens []int32) (token int32) {
		e.Scope(func() {
			hidden := r.Forward(nn.Part{Seq: seq, Tokens: tokens})
			token = int32(mlx.ArgMax(model.Target.Head(hidden), -1, false).Int())
		})
		return token
	}
	vocab := int(model.Processor.Config.Facts().Vocab)
	prompt := make([]int32, o.prefill)
	for i := range prompt {
		prompt[i] = int32(i * 7919 % vocab) // from all over the vocabulary, and of the table of embeddings
	}
	next(prompt[:min(64, len(prompt))]) // maps the weights
	begin := time.Now()
	token := next(prompt)
	m.Prefill = time.Since(begin).Seconds()
	for range 8 { // until steps are replayed
		token = next([]int32{token})
	}
	e.CPU() // resets the counters
	begin = time.Now()
	for range o.decode {
		token = next([]int32{token})
	}
	m.Decode = time.Since(begin).Seconds()
	for name, node := range e.CPU().Nodes {
		m.Inside += node.Time.Seconds()
		if name == "all_sum" || name == "all_gather" || name == "broadcast" {
			m.Between += node.Time.Seconds()
		}
	}
	return m
}

// residentBytes returns the resident set size of this process.
func residentBytes() (n int64, err error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			_, err = fmt.Sscan(value, &n)
			return n << 10, err
		}
	}
	return 0, errNoRSS
}
