package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/bench/internal/rank"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/shard"
	"github.com/ingotml/ingot/runtime/divide"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/processor"
)

// sizes are those of the sums, in bytes.
var sizes = []int{8 << 10, 256 << 10}

// measure is a rank: it measures sums, messages and tokens.
func measure(ctx context.Context, o options) (m measurement, err error) {
	r, err := rank.Open(ctx, o.store, o.image, "ring")
	if err != nil {
		return m, err
	}
	defer r.Close()
	err = r.Thread.Do(ctx, func() error { between(r.Thread, r.Group, &m); return nil })
	if err != nil {
		return m, err
	}
	config, err := r.Files.Config()
	if err != nil {
		return m, err
	}
	stages, err := shard.Even(config, o.ranks)
	if err != nil {
		return m, err
	}
	for _, s := range []shard.Stages{nil, stages} {
		model, err := r.Load(ctx, s)
		if err != nil {
			return m, err
		}
		err = model.Do(ctx, func() error { decode(model, o.decode, &m); return nil })
		if err := errors.Join(err, model.Close(nil)); err != nil {
			return m, err
		}
	}
	return m, predict(&m, r.Files, config, o)
}

// between measures sums and messages.
func between(e *mlx.Thread, g *mlx.Group, m *measurement) {
	const rounds = 40
	timed := func(f func()) float64 {
		var all []float64
		for range rounds {
			begin := time.Now()
			e.Scope(f)
			all = append(all, time.Since(begin).Seconds())
		}
		slices.Sort(all)
		return all[rounds/2]
	}
	m.Sums = map[int]float64{}
	for _, n := range sizes {
		m.Sums[n] = timed(func() { mlx.Eval(g.AllSum(mlx.Zeros(e, mlx.Float32, n/4), mlx.Float32)) })
	}
	if g.Rank() > 1 {
		return
	}
	m.Message = timed(func() {
		x := mlx.Zeros(e, mlx.Float32, sizes[0]/4)
		if g.Rank() == 0 {
			mlx.Eval(g.Send(x, 1))
			mlx.Eval(g.Receive(1, mlx.Float32, sizes[0]/4))
		} else {
			mlx.Eval(g.Send(g.Receive(0, mlx.Float32, sizes[0]/4), 0))
		}
	})
}

// decode measures the time of a token. Ranks other than 0 do not know the tokens of a pipeline, and need not.
func decode(model *load.Model, tokens int, m *measurement) {
	e := model.Thread
	seq := cache.NewSequence(model.Kinds)
	defer seq.Free()
	r := models.NewRepeater(e, model.Target)
	defer r.Forget()
	token := int32(100)
	step := func(n int) {
		e.Scope(func() {
			hidden := r.Forward(nn.Part{Seq: seq, Tokens: slices.Repeat([]int32{token}, n)})
			if mlx.Eval(hidden); model.Stages == nil || model.Ranks.Rank() == 0 {
				token = int32(mlx.ArgMax(model.Target.Head(hidden), -1, false).Int())
			}
		})
	}
	step(32)
	for range 6 { // until steps are replayed
		step(1)
	}
	e.CPU() // resets the counters
	begin := time.Now()
	for range tokens {
		step(1)
	}
	each := time.Since(begin).Seconds() / float64(tokens)
	if model.Stages != nil {
		m.Pipeline = each
		return
	}
	m.Tensor = each
	for name, node := range e.CPU().Nodes {
		if n := node.Time.Seconds() / float64(tokens); rank.Communicates(name) {
			m.Between += n
		} else {
			m.Kernels += n
		}
	}
}

// predict sets what the link adds by the model.
func predict(m *measurement, f processor.Files, config arch.Model, o options) error {
	if o.links == "" {
		return nil
	}
	link, err := divide.ParseLink(o.links)
	if err != nil {
		return err
	}
	in := divide.Input{Model: config, Sizes: divide.Sizes(f.Image), Machines: make([]divide.Machine, o.ranks)}
	for mode, to := range map[divide.Mode]*float64{divide.Tensor: &m.TensorLink, divide.Pipeline: &m.PipelineLink} {
		for _, l := range []divide.Link{link, divide.FreeLink} {
			in.Mode, in.Link = mode, &l
			plan, err := divide.Make(in)
			if err != nil {
				return fmt.Errorf("%s: %w", config.Facts().ModelType, err)
			}
			*to = plan.Time.Between - *to
		}
		*to = -*to
	}
	return nil
}
