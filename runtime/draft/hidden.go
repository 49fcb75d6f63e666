package draft

import (
	"github.com/ingotml/ingot/mlx"
)

// hiddenRows holds the target's hidden states at positions [from, to) of a sequence.
type hiddenRows struct {
	pieces   []*mlx.Array // [n, hidden] each, kept
	from, to int
}

// add stores rows that end at position to. They extend the stored rows if they follow them, and replace them otherwise.
func (h *hiddenRows) add(x *mlx.Array, to int) {
	if from := to - x.Dim(0); from != h.to || len(h.pieces) == 0 {
		h.free()
		h.from = from
	}
	h.pieces, h.to = append(h.pieces, mlx.Keep(x)), to
}

// slice returns the rows of positions [from, to), which must be stored.
func (h *hiddenRows) slice(from, to int) *mlx.Array {
	x := h.pieces[0]
	if len(h.pieces) > 1 {
		x = mlx.Concatenate(0, h.pieces...)
	}
	if from == h.from && to == h.to {
		return x
	}
	return mlx.SliceAxis(x, 0, mlx.Range(from-h.from, to-h.from))
}

// dropBefore frees the rows before a position.
func (h *hiddenRows) dropBefore(before int) {
	if before <= h.from {
		return
	}
	if before >= h.to {
		h.free()
		return
	}
	rest := mlx.Keep(h.slice(before, h.to))
	to := h.to
	h.free()
	h.pieces, h.from, h.to = []*mlx.Array{rest}, before, to
}

func (h *hiddenRows) free() {
	mlx.Free(h.pieces...)
	*h = hiddenRows{}
}
