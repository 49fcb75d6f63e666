// Package table has tensor tables: the tensors that a model has, under their canonical names.
//
// A table says which shapes and types a tensor has, how it divides over ranks, and in which other layouts and under
// which other names it is published. [Table.Check] matches a checkpoint with a table, and [Table.Write] is its inverse.
package table

import (
	"errors"
	"path"
	"strings"
)

// ErrMismatch reports a set of tensors that does not match the configuration.
var ErrMismatch = errors.New("tensors do not fit the configuration")

// Spec is one tensor of a tensor table.
type Spec struct {
	Name     string   // canonical: as in most published checkpoints, and in images
	Shape    []int64  // outermost dimension first
	Aliases  []string // other published names, in order of preference
	Optional bool     // may be absent

	Types    []string  // accepted element types, as safetensors spells them; nil = floating point
	Reshape  [][]int64 // other published shapes, with the elements in the same order
	FreeRows bool      // the checkpoint determines the first dimension
	Offset   bool      // a norm weight that is used as 1 + w, in float32
	Split    Split     // over the ranks that compute a model together

	// For a tensor with several published layouts, Layout names the one of Name, and Forms are the others. All tensors of
	// a Group have the same layout.
	Layout string
	Group  string
	Forms  []Form
}

// Form is a way to make a tensor from other tensors.
type Form struct {
	Layout string
	Make   Make
	Count  int64 // number of experts; 1 if there are none
	// Names are the canonical names of the sources. "*" is the number of an expert.
	Names  []string
	Shapes [][]int64 // of the sources, parallel to Names
	Runs   []Run     // for Gather
	// Transposed: the sources are matrices [..., in, out]. Runs are of the transposed elements.
	Transposed bool
}

// Part is a group of a model's tensors that share a prefix. Checkpoints use different prefixes for the same part.
type Part struct {
	Name     string   // for messages: "text", "vision", "mtp"
	Prefix   string   // canonical
	Accept   []string // other accepted prefixes, in order of preference; may include ""
	Optional bool     // the part may be absent, but only as a whole
}

// Drop names tensors that a checkpoint may have and that are not imported.
type Drop struct {
	Pattern string // of names, as in package path: * matches any characters but /
	Part    string // of the model that is lost with it, such as a tower; "" = nothing is
	Reason  string
	SameAs  string // canonical name of the tensor that it must equal; "" = no constraint
}

// Table is a tensor table: the tensors that an architecture expects, in the order of use.
type Table struct {
	ModelType string
	Specs     []Spec
	Parts     []Part // a tensor belongs to the first part whose prefix its name has, if any
	Droppable []Drop
	Undivided string   // what keeps blocks from being divided over ranks; "" = nothing does
	Spellings []string // pairs of a part of published names, and what the table has instead
}

// TensorInfo describes a tensor of a checkpoint.
type TensorInfo struct {
	Name  string
	DType string // as safetensors spells it: "BF16"
	Shape []int64
	File  string // for messages; may be empty
	Note  string // how it is packed, for messages; may be empty
}

// Match maps each tensor of a table to its sources.
type Match struct {
	Tensors []Matched // in table order, without absent optional ones
	Dropped []Dropped // sorted by name
	Layouts []Layout  // as the names revealed them
}

// Dropped is a tensor of a checkpoint that is not imported.
type Dropped struct {
	Name                 string
	Part, Reason, SameAs string // as in [Drop]
}

// floatTypes are the accepted types of a Spec without Types.
var floatTypes = []string{"BF16", "F16", "F32", "F64"}

func (t *Table) Add(name string, by Split, shape ...int64) *Spec {
	t.Specs = append(t.Specs, Spec{Name: name, Split: by, Shape: shape})
	return &t.Specs[len(t.Specs)-1]
}

// Norm adds the weight of a norm. With offset the weight is used as 1 + w.
func (t *Table) Norm(name string, size int64, offset bool) {
	t.Add(name+".weight", Whole, size).Offset = offset
}

// LayerNorm adds the weight of a LayerNorm, and its bias.
func (t *Table) LayerNorm(name string, size int64) {
	t.Norm(name, size, false)
	t.Add(name+".bias", Whole, size)
}

// Linear adds the weight [out, in] of a linear layer, and its bias if it has one.
func (t *Table) Linear(name string, out, in int64, bias bool, by Split) {
	t.Add(name+".weight", by, out, in)
	if bias {
		t.Add(name+".bias", by.Bias(), out)
	}
}

// Head adds the output projection, or ties it to the embedding, which must be the table's first tensor.
func (t *Table) Head(vocab, hidden int64, tied bool, aliases ...string) {
	if !tied {
		t.Add("lm_head.weight", Outputs, vocab, hidden).Aliases = aliases
		return
	}
	for _, name := range append([]string{"lm_head.weight"}, aliases...) {
		// A writer that keeps only one name of shared memory may have kept the head's.
		t.Specs[0].Aliases = append(t.Specs[0].Aliases, name)
		t.Drop("the head is the embedding (tie_word_embeddings)", name)
		t.Droppable[len(t.Droppable)-1].SameAs = t.Specs[0].Name
	}
}

// Drop adds name patterns of tensors that are not imported.
func (t *Table) Drop(reason string, patterns ...string) {
	for _, p := range patterns {
		t.Droppable = append(t.Droppable, Drop{Pattern: p, Reason: reason})
	}
}

// LeaveOut adds name patterns of a part of the model that is not imported.
func (t *Table) LeaveOut(part, reason string, patterns ...string) {
	for _, p := range patterns {
		t.Droppable = append(t.Droppable, Drop{Pattern: p, Part: part, Reason: reason})
	}
}

// Params returns the number of elements of all tensors that are not optional.
func (t Table) Params() int64 {
	var sum int64
	for _, s := range t.Specs {
		if p := t.part(s.Name); s.Optional || p >= 0 && t.Parts[p].Optional {
			continue
		}
		sum += Elements(s.Shape)
	}
	return sum
}

func Elements(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// part returns the index of the part that a canonical name belongs to, or -1.
func (t Table) part(name string) int {
	for i, p := range t.Parts {
		if len(name) > len(p.Prefix) && name[:len(p.Prefix)] == p.Prefix {
			return i
		}
	}
	return -1
}

// PartOf returns the name of the part that a tensor belongs to; "" = none.
func (t Table) PartOf(name string) string {
	if i := t.part(name); i >= 0 {
		return t.Parts[i].Name
	}
	return ""
}

func (t Table) droppable(name string) (Drop, bool) {
	for _, d := range t.Droppable {
		if ok, _ := path.Match(d.Pattern, name); ok {
			return d, true
		}
	}
	return Drop{}, false
}

// MostTensors returns the number of tensors of a checkpoint that has each of the table in the form of the most.
func (t Table) MostTensors() int64 {
	n := int64(0)
	for _, s := range t.Specs {
		most := int64(1)
		for _, f := range s.Forms {
			parts := int64(0)
			for _, name := range f.Names {
				if parts++; strings.Contains(name, "*") {
					parts += f.Count - 1
				}
			}
			most = max(most, parts)
		}
		n += most
	}
	return n
}
