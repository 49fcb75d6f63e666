package arch

import "strings"

// renamed is the layout of checkpoints of mlx-lm that differs in names and fusion from what the table says.
const renamed = "renamed"

func isRenamed(f Form) bool { return f.Layout == renamed }

// naming is how checkpoints name and lay out the tensors of a table.
type naming struct {
	layout     string
	names      []string // pairs: parts of a table's names, and what replaces them
	transposed bool     // the matrices of layers are [in, out]
	// qkv returns the rows of the fused projection that are queries, keys (part 1) or values (part 2), for rows of so many
	// elements; nil = they are not fused.
	qkv func(part int, columns int64) []Run
}

// qkvParts are the ends of the names of the projections that are fused.
var qkvParts = []string{"q_proj", "k_proj", "v_proj"}

// publishes adds the forms of a layout to all tensors of the table. Queries, keys and values have the same size.
func (t *Table) publishes(p naming) {
	names := strings.NewReplacer(p.names...)
	for i := range t.Specs {
		s := &t.Specs[i]
		f := Form{Layout: p.layout, Make: Copy, Count: 1, Names: []string{names.Replace(s.Name)}}
		shape := append([]int64{}, s.Shape...)
		for part, end := range qkvParts {
			if p.qkv == nil {
				break
			}
			if strings.HasSuffix(s.Name, end+".weight") || strings.HasSuffix(s.Name, end+".bias") {
				columns := elements(shape[1:])
				shape[0] *= int64(len(qkvParts))
				f.Make, f.Runs = Gather, p.qkv(part, columns)
			}
		}
		if len(shape) == 2 && p.transposed && strings.Contains(s.Name, ".layers.") {
			f.Transposed, shape[0], shape[1] = true, shape[1], shape[0]
		}
		f.Shapes = [][]int64{shape}
		if f.Names[0] == s.Name && f.Make == Copy && !f.Transposed {
			continue
		}
		s.Layout, s.Forms = split, append(s.Forms, f)
	}
}

// inOrder is the order of queries, keys and values one after the other, each of so many rows.
func inOrder(rows int64) func(part int, columns int64) []Run {
	return func(part int, columns int64) []Run {
		n := rows * columns
		return []Run{{Begin: int64(part) * n, Count: n, Step: n, Times: 1}}
	}
}

// byHead is the order of queries, keys and values of one head after the other, each of dim rows.
func byHead(heads, dim int64) func(part int, columns int64) []Run {
	return func(part int, columns int64) []Run {
		n := dim * columns
		return []Run{{Begin: int64(part) * n, Count: n, Step: 3 * n, Times: heads}}
	}
}

// plainActivations are the names of activation functions of plain feed-forward blocks, and their canonical names.
var plainActivations = map[string]string{
	"silu": "silu", "swish": "silu", "gelu": "gelu", "relu": "relu", "relu2": "relu2",
	"gelu_pytorch_tanh": "gelu_pytorch_tanh", "gelu_tanh": "gelu_pytorch_tanh", "gelu_new": "gelu_pytorch_tanh",
	"gelu_fast": "gelu_pytorch_tanh",
}

// plainActivation reads an activation function and returns its canonical name.
func (o object) plainActivation(key, def string) string {
	name, ok := plainActivations[o.str(key, def)]
	if !ok {
		o.fail(key, `be "gelu", "gelu_pytorch_tanh", "relu", "relu2" or "silu"`)
	}
	return name
}
