package arch

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// ErrTable says that a set of tensors is not the one that the configuration describes.
var ErrTable = errors.New("tensors do not fit the configuration")

// Spec is one logical tensor of a model.
type Spec struct {
	Name     string   // canonical: that of the published checkpoints, and of images
	Shape    []int64  // outermost dimension first
	Aliases  []string // other names it is published under, in order of preference
	Optional bool     // may be absent
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
	Droppable []Drop
}

// TensorInfo describes a tensor that is there.
type TensorInfo struct {
	Name  string
	DType string // as safetensors spells it: "BF16"
	Shape []int64
	File  string // where it is, for messages; may be empty
}

// Match says where each tensor of a table comes from.
type Match struct {
	Tensors []Matched // in the table's order; absent optional ones are left out
	Dropped []Dropped // sorted by name
}

// Matched is a tensor of the table with the names of the tensors that it is made from.
type Matched struct {
	Spec    Spec
	Sources []string
}

// Dropped is a tensor that is not imported.
type Dropped struct {
	Name, Reason string
	SameAs       string // see [Drop]
}

// floatTypes are the types that a tensor may have.
var floatTypes = []string{"BF16", "F16", "F32"}

func (t *Table) add(name string, shape ...int64) {
	t.Specs = append(t.Specs, Spec{Name: name, Shape: shape})
}

// Params is the number of elements of all tensors that are not optional.
func (t Table) Params() int64 {
	var sum int64
	for _, s := range t.Specs {
		if s.Optional {
			continue
		}
		n := int64(1)
		for _, d := range s.Shape {
			n *= d
		}
		sum += n
	}
	return sum
}

// Check finds every tensor of the table among those that are there. All that is wrong comes in one error, a
// [*TableError]: tensors that are absent, unknown, of another shape, or not of a floating-point type.
func (t Table) Check(have []TensorInfo) (Match, error) {
	byName := make(map[string]TensorInfo, len(have))
	for _, h := range have {
		byName[h.Name] = h
	}
	var m Match
	var problems []Problem
	for _, s := range t.Specs {
		i := slices.IndexFunc(append([]string{s.Name}, s.Aliases...), func(n string) bool { _, ok := byName[n]; return ok })
		if i < 0 {
			if !s.Optional {
				problems = append(problems, Problem{Kind: Absent, Tensor: s.Name, Detail: fmt.Sprintf("want shape %v", s.Shape)})
			}
			continue
		}
		source := s.Name
		if i > 0 {
			source = s.Aliases[i-1]
		}
		h := byName[source]
		delete(byName, source)
		if !slices.Equal(h.Shape, s.Shape) {
			problems = append(problems, Problem{WrongShape, source, h.File, fmt.Sprintf("has shape %v, want %v", h.Shape, s.Shape)})
		}
		if !slices.Contains(floatTypes, h.DType) {
			problems = append(problems, Problem{WrongType, source, h.File, fmt.Sprintf("has type %s, want one of %s", h.DType, strings.Join(floatTypes, ", "))})
		}
		m.Tensors = append(m.Tensors, Matched{Spec: s, Sources: []string{source}})
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if d, ok := t.droppable(name); ok {
			m.Dropped = append(m.Dropped, Dropped{Name: name, Reason: d.Reason, SameAs: d.SameAs})
			continue
		}
		h := byName[name]
		problems = append(problems, Problem{Unknown, name, h.File, fmt.Sprintf("shape %v, no such tensor in a %s model of this configuration", h.Shape, t.ModelType)})
	}
	if len(problems) > 0 {
		return Match{}, &TableError{Problems: problems}
	}
	return m, nil
}

func (t Table) droppable(name string) (Drop, bool) {
	for _, d := range t.Droppable {
		if ok, _ := path.Match(d.Pattern, name); ok {
			return d, true
		}
	}
	return Drop{}, false
}
