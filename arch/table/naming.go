package table

import (
	"strings"
)

// Naming is how checkpoints name and lay out the tensors of a table.
type Naming struct {
	Layout     string
	Names      []string // pairs: parts of a table's names, and what replaces them
	Transposed bool     // the matrices of layers are [in, out]
	// QKV returns the rows of the fused projection that are queries (part 0), keys (1) or values (2), for rows of columns
	// elements; nil = they are not fused.
	QKV func(part int, columns int64) []Run
}

// Publishes adds the forms of a layout to all tensors of the table. Queries, keys and values have the same size.
func (t *Table) Publishes(p Naming) {
	names := strings.NewReplacer(p.Names...)
	for i := range t.Specs {
		s := &t.Specs[i]
		f := Form{Layout: p.Layout, Make: Copy, Count: 1, Names: []string{names.Replace(s.Name)}}
		shape := append([]int64{}, s.Shape...)
		for part, end := range QKV {
			if p.QKV == nil {
				break
			}
			if strings.HasSuffix(s.Name, end+".weight") || strings.HasSuffix(s.Name, end+".bias") {
				columns := Elements(shape[1:])
				shape[0] *= int64(len(QKV))
				f.Make, f.Runs = Gather, p.QKV(part, columns)
			}
		}
		if len(shape) == 2 && p.Transposed && strings.Contains(s.Name, ".layers.") {
			f.Transposed, shape[0], shape[1] = true, shape[1], shape[0]
		}
		f.Shapes = [][]int64{shape}
		if f.Names[0] == s.Name && f.Make == Copy && !f.Transposed {
			continue
		}
		s.Layout, s.Forms = Unfused, append(s.Forms, f)
	}
}

// QKVInOrder is the order of queries, keys and values one after the other, each of the same number of rows.
func QKVInOrder(rows int64) func(part int, columns int64) []Run {
	return func(part int, columns int64) []Run {
		n := rows * columns
		return []Run{{Begin: int64(part) * n, Count: n, Step: n, Times: 1}}
	}
}

// QKVByHead is the order of queries, keys and values of one head after the other, each of dim rows.
func QKVByHead(heads, dim int64) func(part int, columns int64) []Run {
	return func(part int, columns int64) []Run {
		n := dim * columns
		return []Run{{Begin: int64(part) * n, Count: n, Step: 3 * n, Times: heads}}
	}
}
