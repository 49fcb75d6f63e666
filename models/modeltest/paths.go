package modeltest

import (
	"cmp"
	"math"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

// Paths checks that the model computes the reference's logits and greedy continuation on every path:
//
//   - prefill at once, token by token, and in chunks of 7;
//   - packed with two other sequences;
//   - replayed from the tape of the previous forward pass;
//   - restored from snapshots after other tokens;
//   - by sequences that share a prefix.
//
// The type of the stored weights and int8 weights give the same within limits. With 8-bit keys and values the results
// are close.
func (c *Checkpoint) Paths(t *testing.T) {
	t.Run("whole", func(t *testing.T) { c.check(t, c.chunked(t, c.Model, len(c.Tokens), nil)) })
	t.Run("token by token", func(t *testing.T) { c.check(t, c.chunked(t, c.Model, 1, nil)) })
	t.Run("chunks of 7", func(t *testing.T) { c.check(t, c.chunked(t, c.Model, 7, nil)) })
	t.Run("packed", func(t *testing.T) { c.check(t, c.packed(t, c.Model)) })
	t.Run("repeated", func(t *testing.T) { c.check(t, c.repeated(t, c.Model)) })
	t.Run("snapshots", func(t *testing.T) { c.check(t, c.restored(t, c.Model)) })
	t.Run("shared prefix", func(t *testing.T) { c.checkShared(t) })
	t.Run("greedy", func(t *testing.T) { c.checkGreedy(t) })
	t.Run("as stored", func(t *testing.T) { c.checkStored(t) })
	t.Run("int8", func(t *testing.T) { c.checkInt8(t) })
	t.Run("keys and values", func(t *testing.T) { c.checkKV(t) })
}

// Brief checks the paths that every request takes, in the time of a few.
func (c *Checkpoint) Brief(t *testing.T) {
	t.Run("whole", func(t *testing.T) { c.check(t, c.chunked(t, c.Model, len(c.Tokens), nil)) })
	t.Run("packed", func(t *testing.T) { c.check(t, c.packed(t, c.Model)) })
	t.Run("greedy", func(t *testing.T) { c.checkGreedy(t) })
}

// packed returns the logits of all tokens, processed in chunks packed with two other sequences.
func (c *Checkpoint) packed(t *testing.T, m models.Model) []float32 {
	t.Helper()
	return c.chunked(t, m, 11, [][]int32{c.Tokens[3:17], c.Tokens[20:29]})
}

// chunked returns the logits of all tokens, processed n at a time. The others run in the same batches, one before and
// one after, in chunks of other sizes.
func (c *Checkpoint) chunked(t *testing.T, m models.Model, n int, others [][]int32) []float32 {
	t.Helper()
	var logits []float32
	mlxtest.Do(t, func(e *mlx.Thread) {
		seq := cache.NewSequence(m.Layers())
		defer seq.Free()
		var side []*cache.Sequence
		for range others {
			s := cache.NewSequence(m.Layers())
			defer s.Free()
			side = append(side, s)
		}
		for start := 0; start < len(c.Tokens); start += n {
			chunk := c.Tokens[start:min(start+n, len(c.Tokens))]
			parts := []nn.Part{{Seq: seq, Tokens: chunk, All: true}}
			for i := range others {
				take := min(3+2*i, len(others[i]))
				if take == 0 {
					continue
				}
				p := nn.Part{Seq: side[i], Tokens: others[i][:take]}
				others[i] = others[i][take:]
				if i == 0 {
					parts = append([]nn.Part{p}, parts...)
				} else {
					parts = append(parts, p)
				}
			}
			e.Scope(func() {
				all := m.Head(m.Forward(nn.NewBatch(e, parts...))).Float32s()
				first := 0
				if parts[0].Seq != seq {
					first = 1 // the other sequence has one wanted row
				}
				logits = append(logits, all[first*c.Vocab:][:len(chunk)*c.Vocab]...)
			})
		}
	})
	return logits
}

// restored returns the logits of all tokens, each third of them after restoring a snapshot. Snapshots are taken after
// the first and the second third, and restored by a sequence that has processed other tokens, and by an empty one.
func (c *Checkpoint) restored(t *testing.T, m models.Model) []float32 {
	t.Helper()
	var logits []float32
	mlxtest.Do(t, func(e *mlx.Thread) {
		seq := cache.NewSequence(m.Layers())
		defer seq.Free()
		run := func(tokens []int32) (logits []float32) {
			for len(tokens) > 0 {
				n := min(5, len(tokens))
				e.Scope(func() {
					part := nn.Part{Seq: seq, Tokens: tokens[:n], All: true}
					logits = append(logits, m.Head(m.Forward(nn.NewBatch(e, part))).Float32s()...)
				})
				tokens = tokens[n:]
			}
			return logits
		}
		diverge := func() { run(c.Tokens[:9]); run(c.Tokens[4:5]) }
		first, second := len(c.Tokens)/3, 2*len(c.Tokens)/3
		var path []cache.Snapshots
		defer func() {
			for _, s := range path {
				s.Close()
			}
		}()
		back := func(to int) {
			if !seq.Restore(path[len(path)-1], to) {
				t.Errorf("cannot restore to %d", to)
			}
		}
		logits = run(c.Tokens[:first])
		path = append(path, seq.Snapshot(0))
		diverge()
		back(first)
		logits = append(logits, run(c.Tokens[first:second])...)
		path = append(path, seq.Snapshot(first))
		diverge()
		seq.Free()
		if !seq.Restore(path[0], first) {
			t.Errorf("cannot restore to %d from empty", first)
		}
		back(second)
		logits = append(logits, run(c.Tokens[second:])...)
	})
	return logits
}

// checkShared continues a shared prefix with three sequences in the same batches: one runs to the end, one runs with
// other tokens and is rolled back halfway, and one starts then.
func (c *Checkpoint) checkShared(t *testing.T) {
	t.Helper()
	begin := len(c.Tokens) / 2
	rest := c.Tokens[begin:]
	var beginning []float32
	logits := make([][]float32, 3)
	mlxtest.Do(t, func(e *mlx.Thread) {
		var seqs []*cache.Sequence
		for range 3 {
			s := cache.NewSequence(c.Model.Layers())
			defer s.Free()
			seqs = append(seqs, s)
		}
		run := func(parts ...nn.Part) []float32 {
			return c.Model.Head(c.Model.Forward(nn.NewBatch(e, parts...))).Float32s()
		}
		e.Scope(func() { beginning = run(nn.Part{Seq: seqs[0], Tokens: c.Tokens[:begin], All: true}) })
		if err := seqs[1].CopyPrefix(seqs[0], begin); err != nil {
			t.Error(err)
			return
		}
		snaps := seqs[0].Snapshot(0)
		defer snaps.Close()
		left := [][]int32{rest, c.Tokens[:len(rest)/2], nil}
		for len(left[0])+len(left[2]) > 0 {
			var parts []nn.Part
			var owners []int
			for i, tokens := range left {
				if n := min(len(tokens), 2+i); n > 0 {
					parts, owners = append(parts, nn.Part{Seq: seqs[i], Tokens: tokens[:n], All: true}), append(owners, i)
					left[i] = tokens[n:]
				}
			}
			e.Scope(func() {
				all := run(parts...)
				for j, p := range parts {
					n := len(p.Tokens) * c.Vocab
					logits[owners[j]], all = append(logits[owners[j]], all[:n]...), all[n:]
				}
			})
			if left[1] != nil && len(left[1]) == 0 {
				left[1] = nil
				// Removal truncates to the prefix if all layers support it, and otherwise empties the sequence.
				if err := seqs[1].Remove(begin, math.MaxInt); (err != nil) != (seqs[1].Offset() == 0) {
					t.Errorf("removed to %d: %v", seqs[1].Offset(), err)
				}
				if left[2] = rest; !seqs[2].Restore(snaps, begin) {
					t.Error("cannot restore the prefix to a third sequence")
					return
				}
			}
		}
	})
	for _, i := range []int{0, 2} {
		c.check(t, append(beginning[:len(beginning):len(beginning)], logits[i]...))
	}
}

func (c *Checkpoint) check(t *testing.T, logits []float32) {
	t.Helper()
	c.compare(t, logits, c.Logits)
}

// compare checks that logits differ by less than the tolerance.
func (c *Checkpoint) compare(t *testing.T, logits, want []float32) {
	t.Helper()
	if len(logits) != len(want) {
		t.Fatalf("%d logits, want %d", len(logits), len(want))
	}
	worst, at := 0.0, 0
	for i, want := range want {
		d := math.Abs(float64(logits[i]) - float64(want))
		if !(d <= worst) { // also true for NaN
			worst, at = d, i
		}
	}
	t.Logf("largest difference %.2g standard deviations", worst/c.Scale)
	tolerance := cmp.Or(c.Limits.Logits, cpuTolerance)
	if c.gpu {
		tolerance = Tolerance
	}
	if !(worst < tolerance*c.Scale) {
		t.Errorf("logit %d at position %d is %v, want %v: difference of %.3g standard deviations",
			at%c.Vocab, at/c.Vocab, logits[at], want[at], worst/c.Scale)
	}
}

func (c *Checkpoint) checkGreedy(t *testing.T) {
	t.Helper()
	mlxtest.Do(t, func(e *mlx.Thread) {
		seq := cache.NewSequence(c.Model.Layers())
		defer seq.Free()
		next := c.Tokens
		for i, want := range c.Greedy {
			var got int
			e.Scope(func() {
				hidden := c.Model.Forward(nn.NewBatch(e, nn.Part{Seq: seq, Tokens: next}))
				got = mlx.ArgMax(c.Model.Head(hidden), -1, false).Int()
			})
			if got != int(want) {
				t.Errorf("greedy token %d is %d, want %d", i, got, want)
				return
			}
			next = []int32{want}
		}
	})
}
