package arch

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

const maxExperts = 1 << 12

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

// ReadShare returns the share of a tensor's elements that decoding reads for a token: a row of an embedding that is not
// the head, the chosen experts of a stack, and all of any other tensor.
func ReadShare(m Model, s Spec) float64 {
	if s.IsEmbedding() {
		for _, other := range m.Table().Specs {
			if other.IsHead() {
				return 1 / float64(max(s.Shape[0], 1))
			}
		}
		return 1
	}
	if e, ok := expertsOf(m); ok && len(s.Shape) == 3 && s.Shape[0] == int64(e.Count) && e.PerToken > 0 {
		return float64(e.PerToken) / float64(e.Count)
	}
	return 1
}

// expertsOf finds the routed experts in a model's struct.
func expertsOf(m Model) (Experts, bool) {
	return findExperts(reflect.ValueOf(m), 0)
}

// deepestExperts bounds how deep a model's struct has its experts.
const deepestExperts = 6

func findExperts(v reflect.Value, depth int) (Experts, bool) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || v.Kind() != reflect.Struct || depth > deepestExperts {
		return Experts{}, false
	}
	if v.Type() == reflect.TypeFor[Experts]() {
		e := Experts{Count: int(v.FieldByName("Count").Int()), PerToken: int(v.FieldByName("PerToken").Int())}
		return e, e.Count > 0
	}
	for i := range v.NumField() {
		if e, ok := findExperts(v.Field(i), depth+1); ok {
			return e, true
		}
	}
	return Experts{}, false
}

func (o object) checkExperts(key string, e Experts, hidden int) {
	if int64(e.Count)*int64(e.Intermediate)*int64(hidden) > maxExpertElements {
		o.fail(key, fmt.Sprintf("leave at most %d elements to the experts of a layer (they are %d of %d x %d)",
			int64(maxExpertElements), e.Count, e.Intermediate, hidden))
	}
	if e.PerToken > e.Count {
		o.fail(key, fmt.Sprintf("be at least the number of experts per token, %d", e.PerToken))
	}
}

// Layouts of experts and other fused tensors in checkpoints.
const (
	fused     = "fused"             // gate and up in one tensor for all experts, down in another
	stacked   = "stacked"           // gate, up and down in one tensor each, for all experts
	perExpert = "one per expert"    // three tensors per expert
	inRows    = "in rows"           // as fused, with .weight and .bias
	inColumns = "in columns"        // matrices [in, out], whose columns are a gate and an up projection in turns
	inBlocks  = "in blocks"         // codes and scales of rows that are a gate and an up projection in turns
	turned    = "fused, transposed" // as fused, each expert's matrices [in, out]
	split     = "split"             // several tensors that other checkpoints fuse into one
	inThirds  = "in thirds"         // several tensors of equal size, whatever the sizes of their parts are
	allHeads  = "of all heads"      // one tensor for the heads of a layer
	eachHead  = "one per head"      // one tensor for each head
)

// experts adds a layer's experts in the fused layout: base.gate_up_proj [experts, 2*intermediate, hidden], each
// expert's gate before its up projection, and base.down_proj [experts, hidden, intermediate]. switched is the base name
// of the stacked layout, which mlx-lm writes.
func (t *Table) experts(base, switched string, e Experts, hidden int) {
	n, width, h := int64(e.Count), int64(e.Intermediate), int64(hidden)
	gateUp := t.add(base+".gate_up_proj", byExpert, n, 2*width, h)
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
	down := t.add(base+".down_proj", byExpert, n, h, width)
	down.Aliases = []string{base + ".down_proj.weight"}
	down.Layout, down.Group = fused, base
	down.Forms = []Form{
		{
			Layout: stacked, Make: Copy, Count: 1,
			Names: []string{switched + ".down_proj.weight"}, Shapes: [][]int64{{n, h, width}},
		},
		{
			Layout: perExpert, Make: Stack, Count: n,
			Names: []string{base + ".*.down_proj.weight"}, Shapes: [][]int64{{h, width}},
		},
	}
}

// isSquare reports whether a tensor's matrices have the same shape when they are transposed.
func (s Spec) isSquare() bool {
	n := len(s.Shape)
	return n > 1 && s.Shape[n-1] == s.Shape[n-2]
}

// turned returns the form of a tensor that the checkpoint has transposed under its own name. The shape tells, or that
// of the other tensors of its group.
func (c *checker) turned(s Spec, h TensorInfo) *Form {
	if slices.Equal(h.Shape, s.Shape) && (!s.isSquare() || c.layouts[s.Group].name != turned) {
		return nil
	}
	i := slices.IndexFunc(s.Forms, func(f Form) bool {
		return f.Layout == turned && f.Names[0] == s.Name && slices.Equal(f.Shapes[0], h.Shape)
	})
	if i < 0 {
		return nil
	}
	return &s.Forms[i]
}

// transposesExperts states that checkpoints have the fused experts of the table with matrices [in, out], under names in
// which from is replaced by to. If the names are the table's own the shapes tell the layout, as in transformers.
func (t *Table) transposesExperts(from, to string) {
	for i := range t.Specs {
		s := &t.Specs[i]
		if s.Layout != fused {
			continue
		}
		shape := slices.Clone(s.Shape)
		shape[1], shape[2] = shape[2], shape[1]
		if from != to {
			s.Aliases = nil // which would have another shape
		}
		s.Forms = append(s.Forms, Form{
			Layout: turned, Make: Copy, Count: 1, Names: []string{strings.Replace(s.Name, from, to, 1)},
			Shapes: [][]int64{shape}, Transposed: true,
		})
	}
}
