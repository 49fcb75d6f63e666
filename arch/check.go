package arch

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Check finds every tensor of the table among those that are there, in whatever published layout and under whatever
// published prefix they come. All that is wrong comes in one error, a [*TableError]: tensors that are absent, unknown, of
// another shape, of a type that they cannot have, or in a layout that the rest of their group does not have.
func (t Table) Check(have []TensorInfo) (Match, error) {
	c := checker{table: t, have: make(map[string]TensorInfo, len(have)), used: map[string]bool{}, missed: map[string]bool{}, layouts: map[string]layout{}, patterns: map[string]int{}}
	for _, h := range have {
		c.have[h.Name] = h
		c.countPatterns(h.Name)
	}
	c.findPrefixes()
	c.findLayouts()
	for _, s := range t.Specs {
		if c.find(s); c.full() {
			return Match{}, &TableError{Problems: c.problems}
		}
	}
	c.undoShift()
	c.rest()
	if len(c.problems) > 0 {
		return Match{}, &TableError{Problems: c.problems}
	}
	c.match.Layouts = c.recognized()
	return c.match, nil
}

type checker struct {
	table    Table
	have     map[string]TensorInfo
	used     map[string]bool   // names of sources
	prefixes []string          // of the parts in this checkpoint
	absent   []bool            // parts without any tensor
	missed   map[string]bool   // absent tensors that were reported
	layouts  map[string]layout // of groups
	shifted  bool              // some tensor came in a shape that only mlx-lm writes
	patterns map[string]int    // how many names there are with "*" in place of one of their numbers
	match    Match
	problems []Problem
}

// layout is that of the first tensor of a group.
type layout struct{ tensor, name string }

// findPrefixes chooses, for each part, the first prefix under which any of its tensors is there.
func (c *checker) findPrefixes() {
	for i, p := range c.table.Parts {
		all := append([]string{p.Prefix}, p.Accept...)
		at := slices.IndexFunc(all, func(prefix string) bool {
			return slices.ContainsFunc(c.table.Specs, func(s Spec) bool { return c.table.part(s.Name) == i && c.any(s, p.Prefix, prefix) })
		})
		c.prefixes = append(c.prefixes, all[max(at, 0)])
		c.absent = append(c.absent, at < 0)
	}
}

// any tells whether a source of the tensor is there when its part has a prefix.
func (c *checker) any(s Spec, canonical, prefix string) bool {
	for _, name := range allNames(s) {
		if rest, ok := strings.CutPrefix(strings.ReplaceAll(name, "*", "0"), canonical); ok {
			if _, there := c.have[prefix+rest]; there {
				return true
			}
		}
	}
	return false
}

func allNames(s Spec) []string {
	names := append([]string{s.Name}, s.Aliases...)
	for _, f := range s.Forms {
		names = append(names, f.Names...)
	}
	return names
}

// source is the name that a canonical one has in this checkpoint.
func (c *checker) source(canonical string) string {
	i := c.table.part(canonical)
	if i < 0 {
		return canonical
	}
	return c.prefixes[i] + canonical[len(c.table.Parts[i].Prefix):]
}

// lookup tells in which layout a tensor is there: as the table has it, whole, or as a form, of which a source is there.
func (c *checker) lookup(s Spec) (whole TensorInfo, form *Form) {
	for _, name := range append([]string{s.Name}, s.Aliases...) {
		if h, ok := c.have[c.source(name)]; ok {
			return h, nil
		}
	}
	found := 0
	for i, f := range s.Forms {
		if n := c.count(f); n > found {
			form, found = &s.Forms[i], n
		}
	}
	return whole, form
}

// findLayouts finds the layout of each group: that of its first tensor that is there.
func (c *checker) findLayouts() {
	for _, s := range c.table.Specs {
		if _, ok := c.layouts[s.Group]; ok || s.Group == "" {
			continue
		}
		if whole, form := c.lookup(s); whole.Name != "" {
			c.layouts[s.Group] = layout{s.Name, s.Layout}
		} else if form != nil {
			c.layouts[s.Group] = layout{s.Name, form.Layout}
		}
	}
}

func (c *checker) find(s Spec) {
	if i := c.table.part(s.Name); i >= 0 && c.table.Parts[i].Optional && c.absent[i] {
		return
	}
	whole, form := c.lookup(s)
	if form == nil && whole.Name == "" && s.Group != "" {
		// Nothing is there: what is missed is what the layout of the rest asks for.
		if i := slices.IndexFunc(s.Forms, func(f Form) bool { return f.Layout == c.layouts[s.Group].name }); i >= 0 {
			form = &s.Forms[i]
		}
	}
	switch {
	case whole.Name != "":
		c.take(s, whole)
	case form != nil:
		c.compose(s, *form)
	case !s.Optional:
		c.missing(c.source(s.Name), "want shape %v", s.Shape)
	}
}

// missing reports an absent tensor, once.
func (c *checker) missing(name, format string, args ...any) {
	if !c.missed[name] {
		c.missed[name] = true
		c.problem(Absent, TensorInfo{Name: name}, format, args...)
	}
}

func (c *checker) wrongShape(h TensorInfo, want []int64) {
	note := ""
	if h.Note != "" {
		note = " (read as " + h.Note + ")"
	}
	c.problem(WrongShape, h, "has shape %v%s, want %v", h.Shape, note, want)
}

// maxProblems bounds what is collected of a checkpoint that has nothing to do with its configuration.
const maxProblems = 1 << 16

func (c *checker) full() bool { return len(c.problems) >= maxProblems }

func (c *checker) problem(kind ProblemKind, h TensorInfo, format string, args ...any) {
	c.problems = append(c.problems, Problem{kind, h.Name, h.File, fmt.Sprintf(format, args...)})
}

// take matches a tensor that is there as one.
func (c *checker) take(s Spec, h TensorInfo) {
	c.used[h.Name] = true
	m := Matched{Spec: s, Sources: []string{h.Name}, Make: Copy, Repeat: 1}
	switch {
	case slices.Equal(h.Shape, s.Shape):
	case s.FreeRows && len(h.Shape) == len(s.Shape) && slices.Equal(h.Shape[1:], s.Shape[1:]) && h.Shape[0] > 0:
		m.Spec.Shape = slices.Clone(h.Shape)
	case slices.ContainsFunc(s.Reshape, func(shape []int64) bool { return slices.Equal(shape, h.Shape) }):
		m.Make = Reshape
		c.shifted = c.shifted || strings.HasSuffix(s.Name, convWeight)
	default:
		c.wrongShape(h, s.Shape)
	}
	m.Runs = whole(1, elements(m.Spec.Shape))
	c.checkType(s, h)
	c.checkLayout(s, s.Layout)
	c.match.Tensors = append(c.match.Tensors, m)
}

// convWeight is the convolution of gated delta layers, which mlx-lm writes as [channels, kernel, 1].
const convWeight = ".linear_attn.conv1d.weight"

// countPatterns counts a name under each form that it has with "*" for one of its numbers.
func (c *checker) countPatterns(name string) {
	for at := 0; at < len(name); {
		end := at + strings.IndexByte(name[at:]+".", '.')
		if number := name[at:end]; number != "" && strings.Trim(number, "0123456789") == "" {
			c.patterns[name[:at]+"*"+name[end:]]++
		}
		at = end + 1
	}
}

// count tells how many sources of a form are there.
func (c *checker) count(f Form) int {
	n := 0
	for _, name := range f.Names {
		name = c.source(name)
		if _, ok := c.have[name]; ok {
			n++
		}
		if strings.Contains(name, "*") {
			n += c.patterns[name]
		}
	}
	return n
}

// sources gives the names of a form's sources and their shapes: of expert 0, of expert 1, and so on.
func (c *checker) sources(f Form) func(yield func(string, []int64) bool) {
	return func(yield func(string, []int64) bool) {
		for e := range max(f.Count, 1) {
			for i, name := range f.Names {
				before, after, each := strings.Cut(c.source(name), "*")
				if each {
					before += strconv.FormatInt(e, 10) + after
				} else if e > 0 {
					continue
				}
				if !yield(before, f.Shapes[i]) {
					return
				}
			}
		}
	}
}

// compose matches a tensor that is there in pieces.
func (c *checker) compose(s Spec, f Form) {
	m := Matched{Spec: s, Make: f.Make, Repeat: 1, Runs: f.Runs}
	first := TensorInfo{}
	for name, shape := range c.sources(f) {
		if c.full() {
			return
		}
		h, ok := c.have[name]
		if !ok {
			c.missing(name, "want shape %v, to make %s", shape, s.Name)
			continue
		}
		c.used[name] = true
		m.Sources = append(m.Sources, name)
		if !slices.Equal(h.Shape, shape) {
			c.wrongShape(h, shape)
		}
		if first.Name == "" {
			first = h
		}
		if h.DType != first.DType {
			c.problem(WrongType, h, "has type %s, but %s has %s", h.DType, clipName(first.Name), first.DType)
		}
		c.checkType(s, h)
	}
	switch f.Make {
	case Copy:
		m.Runs = whole(1, elements(s.Shape))
	case Stack:
		m.Runs = stackRuns(f)
	case Interleave:
		m.Repeat, m.Runs = f.Count, interleaveRuns(f)
	}
	c.checkLayout(s, f.Layout)
	c.match.Tensors = append(c.match.Tensors, m)
}

func stackRuns(f Form) []Run {
	var runs []Run
	for range max(f.Count, 1) {
		for _, shape := range f.Shapes {
			n := elements(shape)
			runs = append(runs, Run{Source: len(runs), Count: n, Step: n, Times: 1})
		}
	}
	return runs
}

func interleaveRuns(f Form) []Run {
	var runs []Run
	for i, shape := range f.Shapes {
		slab := elements(shape[1:])
		runs = append(runs, Run{Source: i, Count: slab, Step: slab, Times: 1})
	}
	return runs
}

func (c *checker) checkType(s Spec, h TensorInfo) {
	types := s.Types
	if types == nil {
		types = floatTypes
	}
	if !slices.Contains(types, h.DType) {
		c.problem(WrongType, h, "has type %s, want one of %s", h.DType, strings.Join(types, ", "))
	}
}

func (c *checker) checkLayout(s Spec, name string) {
	if first := c.layouts[s.Group]; s.Group != "" && first.name != name {
		c.problem(MixedLayouts, TensorInfo{Name: c.source(s.Name)}, "it is %s, but %s is %s", name, c.source(first.tensor), first.name)
	}
}

// undoShift takes back what mlx-lm does to the norms of a Qwen 3.5 when it writes one: it adds 1 to their weights.
// https://github.com/ml-explore/mlx-lm/blob/d78bf58/mlx_lm/models/qwen3_5.py (sanitize)
func (c *checker) undoShift() {
	if !c.shifted {
		return
	}
	for i := range c.match.Tensors {
		if m := &c.match.Tensors[i]; m.Spec.Offset {
			m.Make, m.Add = Add, -1
		}
	}
}

// rest decides about the tensors that are not in the table.
func (c *checker) rest() {
	for _, name := range slices.Sorted(maps.Keys(c.have)) {
		if c.used[name] {
			continue
		}
		if d, ok := c.droppable(name); ok {
			c.match.Dropped = append(c.match.Dropped, Dropped{Name: name, Reason: d.Reason, SameAs: d.SameAs})
			continue
		}
		h := c.have[name]
		c.problem(Unknown, h, "shape %v, no such tensor in a %s model of this configuration", h.Shape, c.table.ModelType)
	}
}

// droppable looks a name up as it is, and under the canonical prefix of the parts whose prefix it has.
func (c *checker) droppable(name string) (Drop, bool) {
	if d, ok := c.table.droppable(name); ok {
		return d, true
	}
	for i, p := range c.table.Parts {
		if rest, ok := strings.CutPrefix(name, c.prefixes[i]); ok {
			if d, ok := c.table.droppable(p.Prefix + rest); ok {
				return d, true
			}
		}
	}
	return Drop{}, false
}
