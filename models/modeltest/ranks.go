package modeltest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/shard"
	"github.com/ingotml/ingot/quantize"
)

// Ranks checks that ranks that divide a checkpoint's tensors compute the logits of one rank, with plain weights and
// with weights of 4 bits, in chunks and token by token, and that all ranks have the same bits.
func Ranks(t *testing.T, limits Limits, name string, sizes ...int) {
	t.Helper()
	c := Load(t, name)
	c.Limits = limits
	for _, p := range []prec{{dtype: mlx.Float32}, {format: quantize.Int4.WithGroup(32), dtype: mlx.Float32}} {
		one, _ := c.load(t, p)
		var want []float32
		mlxtest.Do(t, func(e *mlx.Thread) { want = c.rankSteps(e, one) })
		for _, size := range sizes {
			what := fmt.Sprintf("%d ranks", size)
			if p.format != 0 {
				what += ", " + p.format.String()
			}
			t.Run(what, func(t *testing.T) { c.checkRanks(t, p, size, want) })
		}
	}
}

// Stages checks that ranks of a pipeline that have different layers of a checkpoint compute the bits of one rank. In a
// long run it also uses packed weights, the types of the checkpoint, and every number of ranks.
func Stages(t *testing.T, name string) {
	t.Helper()
	c := Load(t, name)
	all := []prec{{dtype: mlx.Float32}}
	if runtest.Long() {
		all = append(all, prec{format: quantize.Int4.WithGroup(32), dtype: mlx.Float32}, prec{})
	}
	for _, p := range all {
		one, _ := c.load(t, p)
		var want []float32
		mlxtest.Do(t, func(e *mlx.Thread) { want = c.rankSteps(e, one) })
		for size := int(c.config.Facts().Layers); size > 1; size-- {
			stages, err := shard.Even(c.config, size)
			if err != nil {
				continue // layers that cannot be separated
			}
			t.Run(fmt.Sprint(p.format, " ", stages), func(t *testing.T) { c.checkStages(t, p, stages, want) })
			if !runtest.Long() {
				break
			}
		}
	}
}

func (c *Checkpoint) checkStages(t *testing.T, p prec, stages shard.Stages, want []float32) {
	t.Helper()
	var logits []float32
	mlxtest.Ranks(t, len(stages), func(e *mlx.Thread, ranks *mlx.Group) error {
		parts, err := shard.Divide(c.config, stages, ranks.Rank(), len(stages))
		if err != nil {
			return err
		}
		held, err := holdParts(e, c.config, c.tensors, p, parts)
		weights := held.weights.Staged(ranks, stages, shard.Absent(parts))
		defer weights.Free()
		if err != nil {
			return err
		}
		m, err := models.Build(e, c.config, weights)
		if err != nil {
			return err
		}
		if ranks.Rank() > 0 {
			c.eachStep(e, m, func(out *mlx.Array, _ int) { mlx.Eval(out) })
		} else {
			logits = c.rankSteps(e, m)
		}
		mlx.Eval(ranks.AllSum(mlx.Zeros(e, mlx.Float32, 1), mlx.Float32)) // nobody leaves before
		return nil
	})
	if !slices.Equal(logits, want) {
		t.Errorf("the logits of ranks with %v layers differ from those of one rank", stages)
	}
}

func (c *Checkpoint) checkRanks(t *testing.T, p prec, size int, want []float32) {
	t.Helper()
	logits := make([][]float32, size)
	mlxtest.Ranks(t, size, func(e *mlx.Thread, ranks *mlx.Group) error {
		parts, err := shard.Parts(c.config.Table(), ranks.Rank(), size)
		if err != nil {
			return err
		}
		held, err := holdParts(e, c.config, c.tensors, p, parts)
		weights := held.weights.Over(ranks, shard.Absent(parts))
		defer weights.Free()
		if err != nil {
			return err
		}
		m, err := models.Build(e, c.config, weights)
		if err != nil {
			return err
		}
		logits[ranks.Rank()] = c.rankSteps(e, m)
		return nil
	})
	for rank, got := range logits {
		if rank > 0 && !slices.Equal(got, logits[0]) {
			t.Errorf("rank %d has other logits than rank 0", rank)
		}
	}
	worst := 0.0
	for i := range want {
		if d := math.Abs(float64(logits[0][i]) - float64(want[i])); !(d <= worst) { // also true for NaN
			worst = d
		}
	}
	t.Logf("largest difference %.2g standard deviations", worst/c.Scale)
	if len(logits[0]) != len(want) || !(worst < cmp.Or(c.Limits.Ranks, 1e-5)*c.Scale) {
		t.Errorf("%d logits differ by up to %.3g standard deviations from the %d of one rank", len(logits[0]),
			worst/c.Scale, len(want))
	}
}

// rankSteps returns the logits of all tokens: the first half in chunks of 7, next to another sequence, the others one
// by one, replayed where they can be.
func (c *Checkpoint) rankSteps(e *mlx.Thread, m models.Model) (logits []float32) {
	c.eachStep(e, m, func(out *mlx.Array, n int) { logits = append(logits, m.Head(out).Float32s()[:n*c.Vocab]...) })
	return logits
}

// eachStep calls do with the output of each step, and the number of its rows that count.
func (c *Checkpoint) eachStep(e *mlx.Thread, m models.Model, do func(out *mlx.Array, n int)) {
	seq, other := cache.NewSequence(m.Layers()), cache.NewSequence(m.Layers())
	defer seq.Free()
	defer other.Free()
	r := models.NewRepeater(e, m)
	defer r.Forget()
	half := len(c.Tokens) / 2
	for at := 0; at < len(c.Tokens); {
		n := 1
		var parts []nn.Part
		if at < half {
			n = min(7, half-at)
			parts = []nn.Part{{Seq: other, Tokens: c.Tokens[at : at+1], All: true}}
		}
		parts = slices.Insert(parts, 0, nn.Part{Seq: seq, Tokens: c.Tokens[at : at+n], All: true})
		e.Scope(func() { do(r.Forward(parts...), n) })
		at += n
	}
}

// EveryRanks checks the checkpoints of a model type with 2 and 4 ranks: the first one or those of limits.Full, in the
// long form all. A type that does not divide must say so. With stages, ranks have different layers.
func EveryRanks(t *testing.T, limits Limits, modelType string, stages bool) {
	t.Helper()
	entries, err := os.ReadDir(Dir(""))
	if err != nil {
		t.Fatal(err)
	}
	first := true
	for _, e := range entries {
		variant, ok := strings.CutPrefix(e.Name(), modelType+"-")
		chosen := runtest.Long() || len(limits.Full) == 0 && first || slices.Contains(limits.Full, variant)
		if !ok || !chosen {
			continue
		}
		first = false
		t.Run(e.Name(), func(t *testing.T) {
			if stages {
				Stages(t, e.Name())
				return
			}
			config, _ := read(t, e.Name())
			if _, err := shard.Parts(config.Table(), 0, 2); err != nil {
				if !errors.Is(err, shard.ErrRanks) || !strings.Contains(err.Error(), modelType) {
					t.Errorf("refused with %v", err)
				}
				return
			}
			Ranks(t, limits, e.Name(), 2, 4)
		})
	}
}
