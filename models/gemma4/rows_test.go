package gemma4

import (
	"testing"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/models/nn"
)

// counted counts the rows that a layer processes.
type counted struct {
	Attention
	rows *int
}

func (c counted) Apply(b *nn.Batch, n *nn.Norm, h *mlx.Array) *mlx.Array {
	*c.rows += h.Dim(0)
	return c.Attention.Apply(b, n, h)
}

// Layers that store no keys and values process only the wanted rows.
func TestRowsOfAPrefill(t *testing.T) {
	config, weights := modeltest.Weights(t, "gemma4-e2b")
	c := config.(*types.Gemma4)
	mlxtest.Do(t, func(e *mlx.Thread) {
		m := build(e, c, weights)
		rows := make([]int, len(m.layers))
		for i := range m.layers {
			m.layers[i].attention = counted{m.layers[i].attention, &rows[i]}
		}
		seq, other := cache.NewSequence(m.Layers()), cache.NewSequence(m.Layers())
		defer seq.Free()
		defer other.Free()
		h := m.Forward(nn.NewBatch(e, nn.Part{Seq: seq, Tokens: make([]int32, 20)},
			nn.Part{Seq: other, Tokens: make([]int32, 4), All: true}))
		if h.Dim(0) != 5 {
			t.Errorf("%d rows in the output, want 5", h.Dim(0))
		}
		shared := 0
		for i, n := range rows {
			want := 24
			if c.Shared(i) {
				shared, want = shared+1, 5
			}
			if n != want {
				t.Errorf("layer %d processes %d rows, want %d", i, n, want)
			}
		}
		if shared == 0 {
			t.Error("the model has no layers that share keys and values")
		}
	})
}
