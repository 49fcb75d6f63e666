package table

import (
	"maps"
	"strings"
)

// RowsOf says which rows of a published matrix are a tensor's: times ranges of count rows, the first at begin, step
// rows apart, of Of in all.
type RowsOf struct{ Begin, Count, Step, Times, Of int64 }

// PublishedAs states that checkpoints of a layout have the tensors of the table under other names, pairs of parts of a
// table's names and what replaces them, and some of them as rows of larger matrices. Those are keyed by the last part
// of their names.
func (t *Table) PublishedAs(layout string, names []string, parts ...map[string]RowsOf) {
	rename := strings.NewReplacer(names...)
	joined := map[string]RowsOf{}
	for _, p := range parts {
		maps.Copy(joined, p)
	}
	for i := range t.Specs {
		s := &t.Specs[i]
		f := Form{Layout: layout, Make: Copy, Count: 1, Names: []string{rename.Replace(s.Name)}}
		shape := append([]int64{}, s.Shape...)
		layer := strings.TrimSuffix(strings.TrimSuffix(s.Name, ".weight"), ".bias")
		if r, ok := joined[layer[strings.LastIndex(layer, ".")+1:]]; ok {
			columns := Elements(shape[1:])
			shape[0], f.Make = r.Of, Gather
			f.Runs = []Run{{Begin: r.Begin * columns, Count: r.Count * columns, Step: r.Step * columns, Times: r.Times}}
		}
		f.Shapes = [][]int64{shape}
		if f.Names[0] != s.Name {
			s.Layout, s.Forms = Unfused, append(s.Forms, f)
		}
	}
}

// Consecutive returns the rows of tensors that are concatenated, each with its number of rows.
func Consecutive(names []string, rows ...int64) map[string]RowsOf {
	parts, all := map[string]RowsOf{}, int64(0)
	for _, n := range rows {
		all += n
	}
	at := int64(0)
	for i, name := range names {
		parts[name] = RowsOf{Begin: at, Count: rows[i], Step: rows[i], Times: 1, Of: all}
		at += rows[i]
	}
	return parts
}
