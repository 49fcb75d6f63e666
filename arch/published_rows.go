package arch

import (
	"maps"
	"strings"
)

// rowsOf says which rows of a published matrix are a tensor's: times ranges of count rows, the first at begin, step
// rows apart, of so many in all.
type rowsOf struct{ begin, count, step, times, of int64 }

// Layouts of checkpoints whose names are not those of the table.
const (
	asPublished      = "as published"
	asPublishedFirst = "as published first" // of types that were published in two ways
)

func isPublished(f Form) bool { return f.Layout == asPublished }

// publishedAs states that checkpoints of a layout have the tensors of the table under other names, pairs of parts of a
// table's names and what replaces them, and some of them as rows of larger matrices. Those are keyed by the last part
// of their names.
func (t *Table) publishedAs(layout string, names []string, parts ...map[string]rowsOf) {
	rename := strings.NewReplacer(names...)
	joined := map[string]rowsOf{}
	for _, p := range parts {
		maps.Copy(joined, p)
	}
	for i := range t.Specs {
		s := &t.Specs[i]
		f := Form{Layout: layout, Make: Copy, Count: 1, Names: []string{rename.Replace(s.Name)}}
		shape := append([]int64{}, s.Shape...)
		layer := strings.TrimSuffix(strings.TrimSuffix(s.Name, ".weight"), ".bias")
		if r, ok := joined[layer[strings.LastIndex(layer, ".")+1:]]; ok {
			columns := elements(shape[1:])
			shape[0], f.Make = r.of, Gather
			f.Runs = []Run{{Begin: r.begin * columns, Count: r.count * columns, Step: r.step * columns, Times: r.times}}
		}
		f.Shapes = [][]int64{shape}
		if f.Names[0] != s.Name {
			s.Layout, s.Forms = split, append(s.Forms, f)
		}
	}
}

// oneAfterTheOther returns the rows of tensors that are concatenated, each with so many rows.
func oneAfterTheOther(names []string, rows ...int64) map[string]rowsOf {
	parts, all := map[string]rowsOf{}, int64(0)
	for _, n := range rows {
		all += n
	}
	at := int64(0)
	for i, name := range names {
		parts[name] = rowsOf{begin: at, count: rows[i], step: rows[i], times: 1, of: all}
		at += rows[i]
	}
	return parts
}

// joinedQKV returns the rows of queries, keys and values, one after the other.
func (c Common) joinedQKV() map[string]rowsOf {
	kv := int64(c.KVHeads) * int64(c.HeadDim)
	return oneAfterTheOther(qkvParts, c.queries(), kv, kv)
}

// groupedQKV returns the rows of queries, keys and values where each KV head follows the query heads that read it.
func (c Common) groupedQKV() map[string]rowsOf {
	dim, groups, queries := int64(c.HeadDim), int64(c.KVHeads), int64(c.Heads/c.KVHeads)
	parts, step := map[string]rowsOf{}, (queries+2)*dim
	for i, name := range qkvParts {
		r := rowsOf{begin: (queries + int64(i) - 1) * dim, count: dim, step: step, times: groups, of: step * groups}
		if i == 0 {
			r.begin, r.count = 0, queries*dim
		}
		parts[name] = r
	}
	return parts
}

// joinedGateUp returns the rows of a gate and of the up projection after it.
func (m *Dense) joinedGateUp() map[string]rowsOf {
	wide := int64(m.Intermediate)
	return oneAfterTheOther([]string{"gate_proj", "up_proj"}, wide, wide)
}

// equals links the class of transformers that a type equals whose own class is beside its checkpoints.
func equals(modelType string) string {
	const code = "https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/models/"
	return "[transformers' " + modelType + "](" + code + modelType + "/modeling_" + modelType + ".py)"
}
