package zamba2

import (
	"fmt"
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// block holds the weights of a transformer block that several layers use. It has no residual connections.
type block struct {
	norm, networkNorm *nn.Norm
	q, k, v, o        *nn.Linear
	gate, up, down    *nn.Linear
	heads, kvHeads    int
	options           nn.AttendOptions
}

func newBlock(w *nn.Weights, name string, c *types.Zamba2, rope *nn.Rope) *block {
	attention, network := name+"self_attn", name+"feed_forward"
	queries, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	_, heads := w.Own(attention+".q_proj.weight", c.Heads)
	_, kvHeads := w.Own(attention+".k_proj.weight", c.KVHeads)
	gateUp := nn.NewLinearParts(w, network+".gate_up_proj", []int{c.Intermediate, c.Intermediate}, c.Hidden, c.MLPBias)
	return &block{
		norm:        nn.NewRMSNorm(w, name+"input_layernorm", 2*c.Hidden, c.NormEps),
		networkNorm: nn.NewRMSNorm(w, name+"pre_ff_layernorm", c.Hidden, c.NormEps),
		q:           nn.NewLinear(w, attention+".q_proj", queries, 2*c.Hidden, false),
		k:           nn.NewLinear(w, attention+".k_proj", kv, 2*c.Hidden, false),
		v:           nn.NewLinear(w, attention+".v_proj", kv, 2*c.Hidden, false),
		o:           nn.NewLinear(w, attention+".o_proj", c.Hidden, queries, false).Join(),
		gate:        gateUp[0],
		up:          gateUp[1],
		down:        nn.NewLinear(w, network+".down_proj", c.Hidden, c.Intermediate, c.MLPBias),
		heads:       heads,
		kvHeads:     kvHeads,
		// Scores are scaled as if heads were of the residual stream alone.
		options: nn.AttendOptions{Scale: 1 / math.Sqrt(float64(c.HeadDim)/2), Rope: rope},
	}
}

// adapter is a low-rank addition to the outputs of linear layers.
type adapter struct {
	down *nn.Linear
	up   []*nn.Linear // one for each of the layers
}

func newAdapter(w *nn.Weights, name string, rank, in int, outs ...int) *adapter {
	return &adapter{
		down: nn.NewLinear(w, name+".0", rank, in, false),
		up:   nn.NewLinearParts(w, name+".1", outs, rank, false),
	}
}

// transformer is a use of a block by a layer.
type transformer struct {
	*block
	state            int         // number of the state of its attention
	queries, network *adapter    // of queries, and of gate and input of the MLP; queries may be nil
	others           [2]*adapter // of keys and values
}

func newTransformer(w *nn.Weights, name string, state, number int, c *types.Zamba2, b *block) *transformer {
	l := &transformer{block: b, state: state}
	of := func(part string, in int, outs ...int) *adapter {
		return newAdapter(w, fmt.Sprintf("%s%s_adapter_list.%d", name, part, number), c.Rank, in, outs...)
	}
	if width := c.Heads * c.HeadDim; c.Adapters {
		l.queries = of("self_attn.linear_q", 2*c.Hidden, width)
		l.others[0] = of("self_attn.linear_k", 2*c.Hidden, width)
		l.others[1] = of("self_attn.linear_v", 2*c.Hidden, width)
	}
	l.network = of("feed_forward.gate_up_proj", c.Hidden, c.Intermediate, c.Intermediate)
	return l
}

// apply returns the block's output [T, hidden] for rows [T, 2*hidden].
func (l *transformer) apply(b *nn.Batch, x *mlx.Array) *mlx.Array {
	x = l.norm.Apply(x)
	layers := []*nn.Linear{l.q, l.k, l.v}
	if l.queries != nil {
		layers = append(layers, l.queries.down, l.others[0].down, l.others[1].down)
	}
	in := nn.Linears(x, layers...)
	if l.queries != nil {
		for i, a := range []*adapter{l.queries, l.others[0], l.others[1]} {
			in[i] = mlx.Add(in[i], a.up[0].Apply(in[3+i]))
		}
	}
	heads := func(x *mlx.Array, n int) *mlx.Array { return mlx.Reshape(x, x.Dim(0), n, -1) }
	q, k := l.options.Rope.Apply(b, heads(in[0], l.heads), heads(in[1], l.kvHeads))
	y := l.networkNorm.Apply(l.o.Apply(nn.Attend(b, l.state, q, k, heads(in[2], l.kvHeads), l.options)))
	out := nn.Linears(y, l.gate, l.up, l.network.down)
	more := nn.Linears(out[2], l.network.up...)
	return l.down.ApplyGated(mlx.GELUActivation, mlx.Add(out[0], more[0]), mlx.Add(out[1], more[1]))
}
