package qwen3_5

import (
	"context"
	"fmt"
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

// tower is the vision tower: a projection of an image's patches, attention blocks over all of them, and a merger of
// neighbouring patches.
type tower struct {
	patch     *nn.Linear // of a patch's pixels
	positions *mlx.Array // [side*side or more, hidden]: of a square that is stretched over the image
	side      int
	blocks    []block
	norm      *nn.Norm
	join, out *nn.Linear
	merge     int
	freqs     *mlx.Array // float32 [head size / 2]: radians per row, then per column
	dtype     mlx.DType
}

type block struct {
	attentionNorm *nn.Norm
	qkv, proj     *nn.Linear
	heads         int
	scale         float64

	networkNorm *nn.Norm
	network     *nn.MLP
}

const visionPrefix = "model.visual."

// newTower returns nil if the configuration has no vision tower.
func newTower(t *mlx.Thread, w *nn.Weights, c *types.QwenVision) *tower {
	if c == nil {
		return nil
	}
	p := visionPrefix
	merged := c.Hidden * c.Merge * c.Merge
	v := &tower{
		patch:     newPatches(w, p+"patch_embed.proj", c.Hidden, c.Channels, c.Temporal, c.Patch, c.Patch),
		positions: w.Table(p+"pos_embed.weight", c.Hidden),
		norm:      newLayerNorm(w, p+"merger.norm", c.Hidden),
		join:      nn.NewLinear(w, p+"merger.linear_fc1", merged, merged, true),
		out:       nn.NewLinear(w, p+"merger.linear_fc2", c.Out, merged, true),
		merge:     c.Merge,
		freqs:     w.Constant(visionFreqs(t, c)),
		dtype:     w.DType,
	}
	if v.positions != nil {
		v.side = int(math.Sqrt(float64(v.positions.Dim(0))))
	}
	for i := range c.Depth {
		name := fmt.Sprintf("%sblocks.%d.", p, i)
		v.blocks = append(v.blocks, block{
			attentionNorm: newLayerNorm(w, name+"norm1", c.Hidden),
			qkv:           nn.NewLinear(w, name+"attn.qkv", 3*c.Hidden, c.Hidden, true).Split(3 * c.Heads),
			proj:          nn.NewLinear(w, name+"attn.proj", c.Hidden, c.Hidden, true).Join(),
			heads:         c.Heads,
			scale:         1 / math.Sqrt(float64(c.Hidden/c.Heads)),
			networkNorm:   newLayerNorm(w, name+"norm2", c.Hidden),
			network: &nn.MLP{
				Up:         nn.NewLinear(w, name+"mlp.linear_fc1", c.Intermediate, c.Hidden, true),
				Down:       nn.NewLinear(w, name+"mlp.linear_fc2", c.Hidden, c.Intermediate, true),
				Activation: mlx.GELUTanhActivation,
			},
		})
	}
	return v
}

// newPatches returns the patch convolution as a linear layer over a patch's pixels; patches do not overlap.
func newPatches(w *nn.Weights, name string, hidden int, shape ...int) *nn.Linear {
	weight := w.Take(name+".weight", append([]int{hidden}, shape...)...)
	if weight == nil {
		return nil
	}
	var bias *mlx.Array
	if w.Has(name + ".bias") {
		bias = w.Take(name+".bias", hidden)
	}
	return nn.LinearOf(w.Constant(mlx.Reshape(weight, hidden, -1)), bias)
}

func newLayerNorm(w *nn.Weights, name string, size int) *nn.Norm {
	return nn.NewLayerNorm(w, name, size, 1e-6, true)
}

// visionFreqs returns the frequencies of all pairs: the first half is rotated by rows, the second half, with the same
// frequencies, by columns.
func visionFreqs(t *mlx.Thread, c *types.QwenVision) *mlx.Array {
	half := c.Hidden / c.Heads / 2
	freqs := make([]float32, half)
	for j := range half {
		freqs[j] = float32(math.Pow(c.Theta, -2*float64(j%(half/2))/float64(half)))
	}
	return mlx.FromSlice(t, freqs)
}

// Tower implements models.Seeing.
func (m *Model) Tower() models.Tower {
	if m.tower == nil {
		return nil
	}
	return m.tower
}

// Encode implements models.Tower.
func (v *tower) Encode(ctx context.Context, patches *mlx.Array, rows, cols int) (*mlx.Array, error) {
	at := newPatchGrid(rows, cols, v.merge)
	x := v.patch.Apply(mlx.AsType(patches, v.dtype))
	h := mlx.Add(x, mlx.AsType(v.interpolated(patches.Thread(), at), v.dtype))
	positions := mlx.FromSlice(patches.Thread(), at.positions(), 2, rows*cols)
	for i := range v.blocks {
		h = v.blocks[i].apply(h, positions, v.freqs)
		mlx.Eval(h) // limits the work until the next check: a block of a large image takes seconds
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	joined := mlx.Reshape(v.norm.Apply(h), rows*cols/(v.merge*v.merge), -1)
	return v.out.Apply(mlx.GELU(v.join.Apply(joined))), nil
}

// interpolated returns the position embeddings [n, hidden] of patches in float32, interpolated bilinearly from the
// learned square, whose corners are aligned with those of the image.
func (v *tower) interpolated(t *mlx.Thread, at patchGrid) *mlx.Array {
	ids, weights := at.corners(v.side)
	var sum *mlx.Array
	for k := range ids {
		corner := mlx.AsType(mlx.Take(v.positions, mlx.FromSlice(t, ids[k]), 0), mlx.Float32)
		part := mlx.Multiply(corner, mlx.FromSlice(t, weights[k], len(weights[k]), 1))
		if sum == nil {
			sum = part
		} else {
			sum = mlx.Add(sum, part)
		}
	}
	return sum
}

// apply maps rows [n, hidden] to [n, hidden]. positions, int32 [2, n], are rows and columns.
func (b *block) apply(h, positions, freqs *mlx.Array) *mlx.Array {
	n := h.Dim(0)
	qkv := mlx.SplitEven(b.qkv.Apply(b.attentionNorm.Apply(h)), 3, 1)
	half := freqs.Dim(0) / 2
	qk := mlx.RotateRows(qkv[:2], positions, freqs, false, false, 1, half, half)
	heads := func(x *mlx.Array) *mlx.Array { return mlx.ExpandDims(mlx.Transpose(x, 1, 0, 2), 0) }
	y := mlx.Attention(heads(qk[0]), heads(qk[1]), heads(qkv[2]), nil, nil, b.scale, false)
	y = mlx.Transpose(mlx.Reshape(y, b.heads, n, -1), 1, 0, 2)
	h = mlx.Add(h, b.proj.Apply(y))
	return mlx.Add(h, b.network.Apply(b.networkNorm.Apply(h)))
}
