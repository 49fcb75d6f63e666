package nn

import (
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/shard"
)

// Stage is a rank's place in a pipeline of ranks that have different layers of a model. Rows go from rank to rank, and
// from the last one back to rank 0, which has the ends of the model. A nil Stage is a rank that has all layers.
type Stage struct {
	ranks      *mlx.Group
	first, end int // its layers
	layers     int // of the model
	dtype      mlx.DType
}

// Staged states that these are the tensors of a stage of a pipeline. absent is as for Over.
func (w *Weights) Staged(ranks *mlx.Group, s shard.Stages, absent map[string]bool) *Weights {
	first, end := s.Range(ranks.Rank())
	w.stage, w.absent = &Stage{ranks, first, end, s.Layers(), w.DType}, absent
	return w
}

// FirstLayer returns the first layer of this rank, 0 without a pipeline.
func (w *Weights) FirstLayer() int {
	if w.stage == nil {
		return 0
	}
	return w.stage.first
}

// IsFirst reports whether this rank is rank 0, which begins and finishes forward passes.
func (s *Stage) IsFirst() bool { return s == nil || s.ranks.Rank() == 0 }

// Own returns which of n things this rank has that the layers have equally many of, such as blocks.
func (s *Stage) Own(n int) (first, end int) {
	if s == nil {
		return 0, n
	}
	return s.first * n / s.layers, s.end * n / s.layers
}

// Enter begins a forward pass. On rank 0 it calls begin for the rows that enter the layers, and otherwise it receives
// those that the rank before has sent, [T, dims...].
func (s *Stage) Enter(b *Batch, begin func() *mlx.Array, dims ...int) *mlx.Array {
	if s == nil {
		return begin()
	}
	for _, segment := range b.Segments {
		segment.Seq.AdvanceElsewhere(segment.Len)
	}
	if s.IsFirst() {
		return begin()
	}
	return s.ranks.Receive(s.ranks.Rank()-1, s.dtype, append([]int{b.Rows()}, dims...)...)
}

// Leave ends a forward pass of a stage with the rows x that its layers return: it sends them to the next rank, or from
// the last rank, unless nobody reads them, to rank 0.
func (s *Stage) Leave(b *Batch, x *mlx.Array) *mlx.Array {
	next := s.ranks.Rank() + 1
	if next == s.ranks.Size() {
		if next = 0; b.Unread {
			return x
		}
	}
	return s.ranks.Send(mlx.AsType(x, s.dtype), next)
}

// Returned returns on rank 0 what the last rank sends, [rows, dims...].
func (s *Stage) Returned(rows int, dims ...int) *mlx.Array {
	return s.ranks.Receive(s.ranks.Size()-1, s.dtype, append([]int{rows}, dims...)...)
}

// kinds returns the kinds of the layers' states: those of other ranks are elsewhere.
func (s *Stage) kinds(states []config.LayerState) []cache.Kind {
	kinds := Kinds(states)
	if s == nil {
		return kinds
	}
	first, end := s.Own(len(kinds))
	for i, l := range states {
		if i < first || i >= end {
			kinds[i] = kinds[i].Elsewhere(max(l.Fixed, l.PerEntry, l.PerToken), int64(s.dtype.Size()))
		}
	}
	return kinds
}
