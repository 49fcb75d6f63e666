package config

import (
	"fmt"

	"github.com/ingotml/ingot/arch/table"
)

const MaxExperts = 1 << 12

// maxExpertElements bounds the elements of all experts of a layer, so that the size of a model in bits fits an int64.
const maxExpertElements = 1 << 40

// Experts describes a layer's routed experts, each a gated feed-forward block.
type Experts struct {
	Count        int
	PerToken     int  // experts that the router selects per token
	Intermediate int  // width of one expert
	NormTopK     bool // the weights of the selected experts are normalized to sum to 1
	Identity     int  // further experts, numbered after the others, that return their input
	// Bias: both matrices of an expert have biases.
	Bias  bool
	Clamp Clamp // the activation; the zero value is SwiGLU
}

// Clamp is a clamped SwiGLU: (u + 1) * g * sigmoid(Alpha * g), where g is the gate, at most Limit, and u is the up
// projection, from -Limit to Limit. With an Alpha of 0 it is u * g * sigmoid(g).
type Clamp struct{ Alpha, Limit float64 }

func (o Object) CheckExperts(key string, e Experts, hidden int) {
	if int64(e.Count)*int64(e.Intermediate)*int64(hidden) > maxExpertElements {
		o.Fail(key, fmt.Sprintf("leave at most %d elements to the experts of a layer (they are %d of %d x %d)",
			int64(maxExpertElements), e.Count, e.Intermediate, hidden))
	}
	if e.PerToken > e.Count {
		o.Fail(key, fmt.Sprintf("be at least the number of experts per token, %d", e.PerToken))
	}
}

// AddTo adds a layer's experts in the fused layout: base.gate_up_proj [experts, 2*intermediate, hidden], each
// expert's gate before its up projection, and base.down_proj [experts, hidden, intermediate]. switched is the base name
// of the stacked layout, which mlx-lm writes.
func (e Experts) AddTo(t *table.Table, base, switched string, hidden int) {
	n, width, h := int64(e.Count), int64(e.Intermediate), int64(hidden)
	gateUp := t.Add(base+".gate_up_proj", table.EachExpert, n, 2*width, h)
	gateUp.Aliases = []string{base + ".gate_up_proj.weight"}
	gateUp.Layout, gateUp.Group = table.Fused, base
	gateUp.Forms = []table.Form{
		{
			Layout: table.Stacked, Make: table.Interleave, Count: n,
			Names:  []string{switched + ".gate_proj.weight", switched + ".up_proj.weight"},
			Shapes: [][]int64{{n, width, h}, {n, width, h}},
		},
		{
			Layout: table.PerExpert, Make: table.Stack, Count: n,
			Names:  []string{base + ".*.gate_proj.weight", base + ".*.up_proj.weight"},
			Shapes: [][]int64{{width, h}, {width, h}},
		},
	}
	down := t.Add(base+".down_proj", table.EachExpert, n, h, width)
	down.Aliases = []string{base + ".down_proj.weight"}
	down.Layout, down.Group = table.Fused, base
	down.Forms = []table.Form{
		{
			Layout: table.Stacked, Make: table.Copy, Count: 1,
			Names: []string{switched + ".down_proj.weight"}, Shapes: [][]int64{{n, h, width}},
		},
		{
			Layout: table.PerExpert, Make: table.Stack, Count: n,
			Names: []string{base + ".*.down_proj.weight"}, Shapes: [][]int64{{h, width}},
		},
	}
}

// addBiased adds experts with biases: base.gate_up_proj.weight [experts, 2*intermediate, hidden] and .bias, each
// expert's gate before its up projection, and base.down_proj.weight [experts, hidden, intermediate] and .bias.
// transformers has the matrices transposed, under names without .weight. The published files have codes and scales of
// mxfp4, which are read as one tensor. In both, the outputs of gate and up are interleaved. mlx-lm has them apart.
func (e Experts) addBiased(t *table.Table, base string, hidden int) {
	n, width, h := int64(e.Count), int64(e.Intermediate), int64(hidden)
	add := func(name string, shape []int64, forms ...table.Form) {
		s := t.Add(base+name, table.EachExpert, shape...)
		s.Layout, s.Forms = table.InRows, forms
		for i := range s.Forms {
			f := &s.Forms[i]
			for j := range f.Names {
				f.Names[j] = base + f.Names[j]
			}
			if f.Count == 0 {
				f.Count = 1
			}
		}
	}
	gathered := func(layout, name string, size int64, shape ...int64) table.Form {
		return table.Form{
			Layout: layout, Make: table.Gather, Names: []string{name}, Shapes: [][]int64{shape},
			Runs: interleavedRuns(n, width, size),
		}
	}
	whole := func(layout, name string, shape ...int64) table.Form {
		return table.Form{Layout: layout, Make: table.Copy, Names: []string{name}, Shapes: [][]int64{shape}}
	}
	apart := func(end string, shape ...int64) table.Form {
		return table.Form{
			Layout: table.Stacked, Make: table.Interleave, Count: n,
			Names: []string{".gate_proj" + end, ".up_proj" + end}, Shapes: [][]int64{shape, shape},
		}
	}
	columns := gathered(table.InColumns, ".gate_up_proj", h, n, h, 2*width)
	columns.Transposed = true
	add(".gate_up_proj.weight", []int64{n, 2 * width, h},
		columns, gathered(table.InBlocks, ".gate_up_proj_blocks", h, n, 2*width, h), apart(".weight", n, width, h))
	add(".gate_up_proj.bias", []int64{n, 2 * width},
		gathered(table.InColumns, ".gate_up_proj_bias", 1, n, 2*width),
		gathered(table.InBlocks, ".gate_up_proj_bias", 1, n, 2*width),
		apart(".bias", n, width))
	columns = whole(table.InColumns, ".down_proj", n, width, h)
	columns.Transposed = true
	add(".down_proj.weight", []int64{n, h, width}, columns, whole(table.InBlocks, ".down_proj_blocks", n, h, width))
	add(".down_proj.bias", []int64{n, h},
		whole(table.InColumns, ".down_proj_bias", n, h), whole(table.InBlocks, ".down_proj_bias", n, h))
}

// interleavedRuns are the elements of gates and then of up projections of each of n experts, whose rows are
// interleaved.
func interleavedRuns(n, rows, size int64) []table.Run {
	var runs []table.Run
	for e := range n {
		begin := e * 2 * rows * size
		runs = append(runs,
			table.Run{Begin: begin, Count: size, Step: 2 * size, Times: rows},
			table.Run{Begin: begin + size, Count: size, Step: 2 * size, Times: rows})
	}
	return runs
}
