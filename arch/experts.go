package arch

import "fmt"

const maxExperts = 1 << 12

// maxBank bounds the elements of all experts of a layer, so that the size of a model in bits fits an int64.
const maxBank = 1 << 40

// Experts is a layer's set of routed experts, each a gated feed-forward block.
type Experts struct {
	Count        int
	PerToken     int  // chosen for each token
	Intermediate int  // width of one
	NormTopK     bool // the weights of those chosen are made to sum to 1
}

func (o object) checkBank(key string, e Experts, hidden int) {
	if int64(e.Count)*int64(e.Intermediate)*int64(hidden) > maxBank {
		o.fail(key, fmt.Sprintf("leave at most %d elements to the experts of a layer (they are %d of %d x %d)",
			int64(maxBank), e.Count, e.Intermediate, hidden))
	}
	if e.PerToken > e.Count {
		o.fail(key, fmt.Sprintf("be at least the number of experts per token, %d", e.PerToken))
	}
}

// Layouts that experts are published in.
const (
	fused     = "fused"          // gate and up in one tensor of all experts, down in another
	stacked   = "stacked"        // gate, up and down in a tensor of all experts each
	perExpert = "one per expert" // three tensors per expert
	split     = "split"          // what is one tensor here is several there
)

// experts adds the experts of a layer: gate_up_proj [experts, 2*intermediate, hidden], of each expert the gate first, and
// down_proj [experts, hidden, intermediate]. base is the name before these; switched is that of the layout with one tensor
// per projection, which mlx-lm writes.
func (t *Table) experts(base, switched string, e Experts, hidden int) {
	n, width, h := int64(e.Count), int64(e.Intermediate), int64(hidden)
	gateUp := t.add(base+".gate_up_proj", n, 2*width, h)
	gateUp.Aliases = []string{base + ".gate_up_proj.weight"}
	gateUp.Layout, gateUp.Group = fused, base
	gateUp.Forms = []Form{
		{
			Layout: stacked, Make: Interleave, Count: n,
			Names:  []string{switched + ".gate_proj.weight", switched + ".up_proj.weight"},
			Shapes: [][]int64{{n, width, h}, {n, width, h}},
		},
		{
			Layout: perExpert, Make: Stack, Count: n,
			Names:  []string{base + ".*.gate_proj.weight", base + ".*.up_proj.weight"},
			Shapes: [][]int64{{width, h}, {width, h}},
		},
	}
	down := t.add(base+".down_proj", n, h, width)
	down.Aliases = []string{base + ".down_proj.weight"}
	down.Layout, down.Group = fused, base
	down.Forms = []Form{
		{Layout: stacked, Make: Copy, Count: 1, Names: []string{switched + ".down_proj.weight"}, Shapes: [][]int64{{n, h, width}}},
		{Layout: perExpert, Make: Stack, Count: n, Names: []string{base + ".*.down_proj.weight"}, Shapes: [][]int64{{h, width}}},
	}
}
