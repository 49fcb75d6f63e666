package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/ingotml/ingot/bench/internal/rank"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/runtime/load"
)

// measure loads this process's rank of the image, measures it and reports. It returns when all ranks have reported.
func measure(ctx context.Context, o options, report func(measurement) error) error {
	backend := o.role
	if backend == roleSingle {
		backend = ""
	}
	r, err := rank.Open(ctx, o.store, o.image, backend)
	if err != nil {
		return err
	}
	defer r.Close()
	model, err := r.Load(ctx, nil)
	if err != nil {
		return err
	}
	err = model.Do(ctx, func() error {
		m := forward(model, o)
		r.Thread.ClearCache() // as a model that has become idle does
		debug.FreeOSMemory()
		if m.RSS, err = residentBytes(); err != nil {
			return err
		}
		if err := report(m); err != nil || r.Group == nil {
			return err
		}
		mlx.Eval(r.Group.AllSum(mlx.Zeros(r.Thread, mlx.Float32, 1), mlx.Float32))
		return nil
	})
	err = errors.Join(err, model.Close(nil))
	if err == nil && r.Group != nil {
		err = r.Group.Finish()
	}
	return err
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
		if rank.Communicates(name) {
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
