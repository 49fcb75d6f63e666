package source

import (
	"fmt"

	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/adapter"
)

// partDelta is the part of a delta that one of the source's tensors gets.
type partDelta struct {
	adapter.Delta
	at int // in src.tensors
}

// targets finds the tensors that a delta changes: the module's weight, or, if the source has that in parts, such as an
// image of a checkpoint with fused queries, keys and values, each part with its rows of lora_B.
func (src *Source) targets(n names, a *adapter.Adapter, d adapter.Delta) ([]partDelta, error) {
	name := d.Module + ".weight"
	at, err := src.target(n, a, d.A, name)
	if err == nil {
		return []partDelta{{d, at}}, nil
	}
	name, _ = n.table.Canonical(name)
	var parts []partDelta
	for _, s := range src.Model.Table().Specs {
		form, ok := rowsOf(s, name)
		if !ok {
			continue
		}
		if whole := form.Shapes[0]; d.B.Shape[0] != whole[0] || d.A.Shape[1] != whole[1] {
			return nil, fmt.Errorf("%s: tensor %s: %w: with lora_B it changes a weight of shape %v, but that of %s is %v",
				a.Path(), d.A.Name, ErrSource, []int64{d.B.Shape[0], d.A.Shape[1]}, form.Names[0], whole)
		}
		at, errPart := src.target(n, a, d.A, s.Name)
		if errPart != nil {
			return nil, errPart
		}
		part := d
		part.Begin, part.Rows = form.Runs[0].Begin/s.Shape[1], s.Shape[0]
		parts = append(parts, partDelta{part, at})
	}
	if len(parts) == 0 {
		return nil, err
	}
	return parts, nil
}

// rowsOf returns the form in which a table's matrix is some consecutive rows of the tensor with this name.
func rowsOf(s table.Spec, name string) (table.Form, bool) {
	for _, f := range s.Forms {
		if f.Make != table.Gather || f.Transposed || len(f.Names) != 1 || len(f.Runs) != 1 || len(s.Shape) != 2 ||
			len(f.Shapes[0]) != 2 {
			continue
		}
		run := f.Runs[0]
		rows := run.Times == 1 && run.Count == s.Shape[0]*s.Shape[1] && run.Begin%s.Shape[1] == 0
		if rows && f.Names[0] == name {
			return f, true
		}
	}
	return table.Form{}, false
}
