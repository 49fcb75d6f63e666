package table

import (
	"slices"
	"strings"
)

// Fuses states that other checkpoints have linear layers of the table as one, whose rows are theirs in order.
func (t *Table) Fuses(whole string, parts ...string) {
	for _, end := range []string{".weight", ".bias"} {
		var of []*Spec
		var rows int64
		for i := range t.Specs {
			for _, part := range parts {
				if s := &t.Specs[i]; s.Name == part+end {
					of = append(of, s)
					rows += s.Shape[0]
				}
			}
		}
		var at int64
		for _, s := range of {
			size := Elements(s.Shape)
			shape := append([]int64{rows}, s.Shape[1:]...)
			s.Layout, s.Group = Unfused, whole
			s.Forms = []Form{{
				Layout: Fused, Make: Gather, Count: 1, Names: []string{whole + end}, Shapes: [][]int64{shape},
				Runs: []Run{{Begin: at, Count: size, Step: size, Times: 1}},
			}}
			at += size
		}
	}
}

// Layouts of experts and other fused tensors in checkpoints.
const (
	Fused      = "fused"             // gate and up in one tensor for all experts, down in another
	Stacked    = "stacked"           // gate, up and down in one tensor each, for all experts
	PerExpert  = "one per expert"    // three tensors per expert
	InRows     = "in rows"           // as fused, with .weight and .bias
	InColumns  = "in columns"        // matrices [in, out], with interleaved columns of a gate and an up projection
	InBlocks   = "in blocks"         // codes and scales of interleaved rows of a gate and an up projection
	Transposed = "fused, transposed" // as fused, each expert's matrices [in, out]
	Unfused    = "split"             // several tensors that other checkpoints fuse into one
	InThirds   = "in thirds"         // several tensors of equal size, whatever the sizes of their parts are
	AllHeads   = "of all heads"      // one tensor for the heads of a layer
	EachHead   = "one per head"      // one tensor for each head
)

// IsSquare reports whether a tensor's matrices have the same shape when they are transposed.
func (s Spec) IsSquare() bool {
	n := len(s.Shape)
	return n > 1 && s.Shape[n-1] == s.Shape[n-2]
}

// transposed returns the form of a tensor that the checkpoint has transposed under its own name. Its shape tells, or
// the shapes of the other tensors of its group.
func (c *checker) transposed(s Spec, h TensorInfo) *Form {
	if slices.Equal(h.Shape, s.Shape) && (!s.IsSquare() || c.layouts[s.Group].name != Transposed) {
		return nil
	}
	i := slices.IndexFunc(s.Forms, func(f Form) bool {
		return f.Layout == Transposed && f.Names[0] == s.Name && slices.Equal(f.Shapes[0], h.Shape)
	})
	if i < 0 {
		return nil
	}
	return &s.Forms[i]
}

// TransposesExperts states that checkpoints have the fused experts of the table with matrices [in, out], under names in
// which from is replaced by to. If the names are the table's own the shapes tell the layout, as in transformers.
func (t *Table) TransposesExperts(from, to string) {
	for i := range t.Specs {
		s := &t.Specs[i]
		if s.Layout != Fused {
			continue
		}
		shape := slices.Clone(s.Shape)
		shape[1], shape[2] = shape[2], shape[1]
		if from != to {
			s.Aliases = nil // which would have another shape
		}
		s.Forms = append(s.Forms, Form{
			Layout: Transposed, Make: Copy, Count: 1, Names: []string{strings.Replace(s.Name, from, to, 1)},
			Shapes: [][]int64{shape}, Transposed: true,
		})
	}
}

// Also states that other checkpoints have the tensors of the table under names in which, of each list of pairs, all
// occurrences of a first part are replaced by the second.
func (t *Table) Also(lists ...[]string) {
	for i := range t.Specs {
		s := &t.Specs[i]
		forms := len(s.Forms)
		for _, pairs := range lists {
			r := strings.NewReplacer(pairs...)
			if name := r.Replace(s.Name); name != s.Name {
				s.Aliases = append(s.Aliases, name)
			}
			for _, f := range s.Forms[:forms] {
				names := make([]string, len(f.Names))
				for j, name := range f.Names {
					names[j] = r.Replace(name)
				}
				if !slices.Equal(names, f.Names) {
					f.Names = names
					s.Forms = append(s.Forms, f)
				}
			}
		}
	}
}

// Renamed is the layout of checkpoints of mlx-lm that differs in names and fusion from what the table says.
const Renamed = "renamed"

func isRenamed(f Form) bool { return f.Layout == Renamed }

// Layouts of checkpoints whose names are not those of the table.
const (
	AsPublished      = "as published"
	AsPublishedFirst = "as published first" // of types that were published in two ways
)

func isPublished(f Form) bool { return f.Layout == AsPublished }

// StacksAsFused states that mlx-lm has stacked experts under the names of fused ones. The fused ones have no .weight.
func (t *Table) StacksAsFused() {
	for i := range t.Specs {
		if t.Specs[i].Layout == Fused {
			t.Specs[i].Aliases = nil
		}
	}
	t.Also(ExpertsOfMLX)
}
