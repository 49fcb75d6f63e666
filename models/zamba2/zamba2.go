// Package zamba2 runs model type "zamba2": layers of Mamba 2. Before some of them is a transformer block, which reads
// the residual stream beside the embeddings. A few blocks take turns; each use has adapters of its own.
//
// Reference: transformers 5.23, models/zamba2/modeling_zamba2.py.
package zamba2

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() { models.Register("zamba2", build) }

// model is a zamba2 model.
type model struct {
	*nn.Decoder
	layers []layer
	hidden int
}

// layer is a scan, which reads its normalized input. The output of a transformer block is added to the input of the
// norm, but not to the residual stream.
type layer struct {
	norm   *nn.Norm
	scan   *recurrent.SSM
	shared *transformer // nil means none
	linear *nn.Linear   // of the output of shared
}

// scanEps is the eps of the output norm of scans, which the configuration does not give.
const scanEps = 1e-5

func build(t *mlx.Thread, c *types.Zamba2, w *nn.Weights) *model {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := &model{Decoder: nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.LastNorm())}),
		hidden: c.Hidden}
	var rope *nn.Rope
	if c.Rotates {
		rope = nn.NewRope(t, w, c.Rope, c.HeadDim)
	}
	blocks := map[string]*block{}
	for i, hybrid := range c.Hybrid {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		var l layer
		if hybrid {
			name, adapter := c.Shared(i)
			if blocks[name] == nil {
				blocks[name] = newBlock(w, name, c, rope)
			}
			l.shared = newTransformer(w, name, 2*i, adapter, c, blocks[name])
			l.linear = nn.NewLinear(w, p+"linear", c.Hidden, c.Hidden, false)
			p += "mamba_decoder."
		}
		l.norm, l.scan = norm(p+"input_layernorm"), recurrent.NewSSM(w, p+"mamba", 2*i+1, c.SSM, c.Hidden, scanEps)
		m.layers = append(m.layers, l)
	}
	return m
}

// Forward returns the normalized final hidden states of the wanted rows, and advances the caches by all rows.
func (m *model) Forward(b *nn.Batch) *mlx.Array {
	s := m.Stage()
	embedded := s.Enter(b, func() *mlx.Array { return b.Embedded(m.Embed(b.Tokens)) }, 2*m.hidden)
	h, y := embedded, (*mlx.Array)(nil)
	if !s.IsFirst() {
		both := mlx.SplitEven(embedded, 2, 1)
		h, embedded = both[0], both[1]
	}
	first, end := s.Own(len(m.layers))
	for i := first; i < end; i++ {
		last := b
		if i == len(m.layers)-1 {
			last = b.Ending()
		}
		h, y = m.layers[i].apply(b, last, h, y, embedded)
	}
	if s != nil {
		if h = mlx.Add(h, y); end < len(m.layers) {
			h = mlx.Concatenate(1, h, embedded)
		}
		return s.Leave(b, h)
	}
	_, x := m.Norm.AddApply(h, y)
	return x
}

// apply returns two arrays whose sum is the layer's output, for the rows that last asks for. The input is x+y; y may be
// nil. The scan needs the transformer block's output of all rows of b.
func (l *layer) apply(b, last *nn.Batch, x, y, embedded *mlx.Array) (sum, out *mlx.Array) {
	if l.shared == nil {
		return l.scan.AddApply(last, l.norm, x, y)
	}
	if y != nil {
		x = mlx.Add(x, y)
	}
	transformed := l.linear.Apply(l.shared.apply(b, mlx.Concatenate(1, x, embedded)))
	_, in := l.norm.AddApply(x, transformed)
	return last.Queried(x), l.scan.Apply(last, in)
}
