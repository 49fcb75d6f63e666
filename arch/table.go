package arch

import (
	"errors"
	"path"
)

// ErrTable says that a set of tensors is not the one that the configuration describes.
var ErrTable = errors.New("tensors do not fit the configuration")

// Spec is one logical tensor of a model.
type Spec struct {
	Name     string   // canonical: that of the published checkpoints, and of images
	Shape    []int64  // outermost dimension first
	Aliases  []string // other names it is published under, in order of preference
	Optional bool     // may be absent

	Types    []string  // element types that it may have, as safetensors spells them; nil = floating point
	Reshape  [][]int64 // other shapes it is published in, the elements in the same order
	FreeRows bool      // the first dimension may differ: the checkpoint decides
	Offset   bool      // a norm's weight that is used as 1 + w, in float32

	// A tensor that is published in several layouts: Layout names the one of Name, Forms are the others. Tensors of one
	// Group come in the same layout.
	Layout string
	Group  string
	Forms  []Form
}

// Form is a way to make a tensor from others.
type Form struct {
	Layout string
	Make   Make
	Count  int64 // of experts; 1 where there are none
	// Names of the sources, canonical but for what stands in their place. "*" stands for the number of an expert.
	Names  []string
	Shapes [][]int64 // of the sources, one per name
	Runs   []Run     // of Gather
}

// Part is a share of a model whose tensors are published under several prefixes. All tensors of a part have the same one.
type Part struct {
	Name     string   // for messages: "text", "vision", "mtp"
	Prefix   string   // canonical
	Accept   []string // others, in order of preference; "" is one
	Optional bool     // all of the part may be absent, not a piece of it
}

// Drop names tensors that may be in a checkpoint and are not imported.
type Drop struct {
	Pattern string // of names, as in package path: * stands for one run of characters without /
	Reason  string
	SameAs  string // canonical name of the tensor whose contents it must equal; "" = it may hold anything
}

// Table lists the tensors of a model in the order in which it uses them.
type Table struct {
	ModelType string
	Specs     []Spec
	Parts     []Part // the first whose prefix a name has is the tensor's; a tensor may have none
	Droppable []Drop
}

// TensorInfo describes a tensor that is there.
type TensorInfo struct {
	Name  string
	DType string // as safetensors spells it: "BF16"
	Shape []int64
	File  string // where it is, for messages; may be empty
	Note  string // how it is packed there, for messages; may be empty
}

// Match says where each tensor of a table comes from.
type Match struct {
	Tensors []Matched // in the table's order; absent optional ones are left out
	Dropped []Dropped // sorted by name
	Layouts []Layout  // what the names showed
}

// Dropped is a tensor that is not imported.
type Dropped struct {
	Name, Reason string
	SameAs       string // see [Drop]
}

// floatTypes are the types of tensors that say nothing else.
var floatTypes = []string{"BF16", "F16", "F32", "F64"}

func (t *Table) add(name string, shape ...int64) *Spec {
	t.Specs = append(t.Specs, Spec{Name: name, Shape: shape})
	return &t.Specs[len(t.Specs)-1]
}

// norm adds the weight of a norm; with offset it is used as 1 + w.
func (t *Table) norm(name string, size int64, offset bool) {
	t.add(name+".weight", size).Offset = offset
}

// linear adds the weight [out, in] of a linear layer, and its bias where it has one.
func (t *Table) linear(name string, out, in int64, bias bool) {
	t.add(name+".weight", out, in)
	if bias {
		t.add(name+".bias", out)
	}
}

// mlp adds a gated feed-forward block.
func (t *Table) mlp(name string, hidden, intermediate int64) {
	t.linear(name+".gate_proj", intermediate, hidden, false)
	t.linear(name+".up_proj", intermediate, hidden, false)
	t.linear(name+".down_proj", hidden, intermediate, false)
}

// head adds the output projection, or ties it to the embedding, which must be the table's first tensor.
func (t *Table) head(vocab, hidden int64, tied bool, aliases ...string) {
	if !tied {
		t.add("lm_head.weight", vocab, hidden).Aliases = aliases
		return
	}
	for _, name := range append([]string{"lm_head.weight"}, aliases...) {
		// A writer that keeps one of two names of the same memory may have kept the head's.
		t.Specs[0].Aliases = append(t.Specs[0].Aliases, name)
		t.drop("the head is the embedding (tie_word_embeddings)", name)
		t.Droppable[len(t.Droppable)-1].SameAs = t.Specs[0].Name
	}
}

// drop adds patterns of tensors that are not imported.
func (t *Table) drop(reason string, patterns ...string) {
	for _, p := range patterns {
		t.Droppable = append(t.Droppable, Drop{Pattern: p, Reason: reason})
	}
}

// Params is the number of elements of all tensors that are not optional.
func (t Table) Params() int64 {
	var sum int64
	for _, s := range t.Specs {
		if p := t.part(s.Name); s.Optional || p >= 0 && t.Parts[p].Optional {
			continue
		}
		sum += elements(s.Shape)
	}
	return sum
}

func elements(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// part gives the index of the part that a canonical name belongs to, -1 for none.
func (t Table) part(name string) int {
	for i, p := range t.Parts {
		if len(name) > len(p.Prefix) && name[:len(p.Prefix)] == p.Prefix {
			return i
		}
	}
	return -1
}

func (t Table) droppable(name string) (Drop, bool) {
	for _, d := range t.Droppable {
		if ok, _ := path.Match(d.Pattern, name); ok {
			return d, true
		}
	}
	return Drop{}, false
}
