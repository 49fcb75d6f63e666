package table

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Check matches a checkpoint's tensors against the table, in any published layout and under any published prefix. It
// returns all problems in one error, a [*TableError]: tensors that are absent, unknown, or of the wrong shape or type,
// and tensors whose layout differs from the rest of their group.
func (t Table) Check(have []TensorInfo) (Match, error) {
	c := checker{
		table:    t,
		have:     make(map[string]TensorInfo, len(have)),
		used:     map[string]bool{},
		missed:   map[string]bool{},
		layouts:  map[string]layout{},
		patterns: map[string]int{},
	}
	spellings := strings.NewReplacer(t.Spellings...)
	for _, h := range have {
		name := spellings.Replace(unwrapped(h.Name))
		if _, taken := c.have[name]; taken {
			name = h.Name
		}
		c.have[name] = h
		c.countPatterns(name)
	}
	c.findPrefixes()
	c.findLayouts()
	c.findNames()
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
	have     map[string]TensorInfo // by name without wrappers
	used     map[string]bool       // by source name
	prefixes []string              // of each part, in this checkpoint
	absent   []bool                // by part: it has no tensor
	missed   map[string]bool       // absent tensors reported so far
	layouts  map[string]layout     // by group
	names    string                // the layout of names that are not the table's; "" = they are
	shifted  bool                  // a tensor has a shape that only mlx-lm writes
	patterns map[string]int        // number of names per pattern: a name with one of its numbers replaced by "*"
	match    Match
	problems []Problem
}

// layout is a group's layout, and the tensor that determined it.
type layout struct{ tensor, name string }

// findPrefixes selects, for each part, the first accepted prefix under which the checkpoint has a tensor of that part.
func (c *checker) findPrefixes() {
	for i, p := range c.table.Parts {
		all := append([]string{p.Prefix}, p.Accept...)
		at := slices.IndexFunc(all, func(prefix string) bool {
			return slices.ContainsFunc(c.table.Specs, func(s Spec) bool {
				return c.table.part(s.Name) == i && c.hasSource(s, p.Prefix, prefix)
			})
		})
		c.prefixes = append(c.prefixes, all[max(at, 0)])
		c.absent = append(c.absent, at < 0)
	}
}

// hasSource reports whether the checkpoint has a source of the tensor when its part's canonical prefix is replaced.
func (c *checker) hasSource(s Spec, canonical, prefix string) bool {
	for _, name := range AllNames(s) {
		if rest, ok := strings.CutPrefix(strings.ReplaceAll(name, "*", "0"), canonical); ok {
			if _, there := c.have[prefix+rest]; there {
				return true
			}
		}
	}
	return false
}

func AllNames(s Spec) []string {
	names := append([]string{s.Name}, s.Aliases...)
	for _, f := range s.Forms {
		names = append(names, f.Names...)
	}
	return names
}

// source translates a canonical name to this checkpoint's prefix.
func (c *checker) source(canonical string) string {
	i := c.table.part(canonical)
	if i < 0 {
		return canonical
	}
	return c.prefixes[i] + canonical[len(c.table.Parts[i].Prefix):]
}

// lookup finds a tensor in the checkpoint: whole, under its name or an alias, or else in the form with the most sources
// present; of equal ones, the first whose shapes fit. Both results are zero if the tensor is absent.
func (c *checker) lookup(s Spec) (whole TensorInfo, form *Form) {
	for _, name := range append([]string{s.Name}, s.Aliases...) {
		if h, ok := c.have[c.source(name)]; ok {
			if form := c.transposed(s, h); form != nil {
				return whole, form
			}
			return h, nil
		}
	}
	found := 0
	for i, f := range s.Forms {
		if n := c.count(f); n > found || n > 0 && n == found && !c.fits(*form) && c.fits(f) {
			form, found = &s.Forms[i], n
		}
	}
	return whole, form
}

// findLayouts sets each group's layout to that of its first tensor in the checkpoint. A tensor whose shape fits two
// layouts decides only if all of its group do.
func (c *checker) findLayouts() {
	for _, any := range []bool{false, true} {
		for _, s := range c.table.Specs {
			if _, ok := c.layouts[s.Group]; ok || s.Group == "" {
				continue
			}
			whole, form := c.lookup(s)
			if whole.Name != "" && !any && s.IsSquare() {
				continue
			}
			if whole.Name != "" {
				c.layouts[s.Group] = layout{s.Name, s.Layout}
			} else if form != nil {
				c.layouts[s.Group] = layout{s.Name, form.Layout}
			}
		}
	}
}

// findNames sets the layout of names that are not the table's, if the checkpoint has any.
func (c *checker) findNames() {
	for _, s := range c.table.Specs {
		_, form := c.lookup(s)
		if form != nil && (form.Layout == AsPublished || form.Layout == AsPublishedFirst) {
			c.names = form.Layout
			return
		}
	}
}

// fits reports whether the sources of a form that the checkpoint has are of the right shapes.
func (c *checker) fits(f Form) bool {
	for name, shape := range c.sources(f) {
		if h, ok := c.have[name]; ok && !slices.Equal(h.Shape, shape) {
			return false
		}
	}
	return true
}

func (c *checker) find(s Spec) {
	if i := c.table.part(s.Name); i >= 0 && c.table.Parts[i].Optional && c.absent[i] {
		return
	}
	whole, form := c.lookup(s)
	if form == nil && whole.Name == "" {
		// The tensor is absent. Report the sources that the group's layout requires, not the canonical name.
		want := c.layouts[s.Group].name
		if s.Group == "" {
			want = c.names
		}
		if i := slices.IndexFunc(s.Forms, func(f Form) bool { return f.Layout == want }); i >= 0 {
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

// missing reports an absent tensor, once per name.
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

// maxProblems bounds the problems collected for a checkpoint that does not match its configuration at all.
const maxProblems = 1 << 16

func (c *checker) full() bool { return len(c.problems) >= maxProblems }

func (c *checker) problem(kind ProblemKind, h TensorInfo, format string, args ...any) {
	c.problems = append(c.problems, Problem{kind, h.Name, h.File, fmt.Sprintf(format, args...)})
}

// take matches a tensor that the checkpoint has whole.
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
	m.Runs = whole(1, Elements(m.Spec.Shape))
	c.checkType(s, h)
	c.checkLayout(s, s.Layout)
	c.match.Tensors = append(c.match.Tensors, m)
}

// convWeight is the convolution weight of gated delta layers. mlx-lm writes it as [channels, kernel, 1].
const convWeight = ".linear_attn.conv1d.weight"

// countPatterns adds the patterns of a name to patterns.
func (c *checker) countPatterns(name string) {
	for pattern := range expertPatterns(name) {
		c.patterns[pattern]++
	}
}

// count returns how many sources of a form the checkpoint has.
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

// sources yields the names and shapes of a form's sources: those of expert 0, then of expert 1, and so on.
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

// compose matches a tensor that the checkpoint has in several sources or in another layout.
func (c *checker) compose(s Spec, f Form) {
	m := Matched{Spec: s, Make: f.Make, Repeat: 1, Runs: f.Runs, Transposed: f.Transposed}
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
		c.used[h.Name] = true
		m.Sources = append(m.Sources, h.Name)
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
		m.Runs = whole(1, Elements(s.Shape))
	case Stack:
		m.Runs = stackRuns(f)
	case Interleave:
		m.Repeat, m.Runs = f.Count, interleaveRuns(f)
	}
	c.checkLayout(s, f.Layout)
	c.match.Tensors = append(c.match.Tensors, m)
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
		c.problem(MixedLayouts, TensorInfo{Name: c.source(s.Name)},
			"it is %s, but %s is %s", name, c.source(first.tensor), first.name)
	}
}

// undoShift reverts the shift of Qwen 3.5's norm weights: mlx-lm adds 1 to them when it writes a checkpoint.
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

// rest sorts the tensors outside the table into dropped and unknown ones.
func (c *checker) rest() {
	for _, name := range slices.Sorted(maps.Keys(c.have)) {
		h := c.have[name]
		if c.used[h.Name] {
			continue
		}
		if d, ok := c.droppable(name); ok {
			c.match.Dropped = append(c.match.Dropped, Dropped{h.Name, d.Part, d.Reason, d.SameAs})
			continue
		}
		c.problem(Unknown, h, "shape %v, no such tensor in a %s model of this configuration", h.Shape, c.table.ModelType)
	}
}

// droppable looks up a name as it is, and under the canonical prefix of each part whose prefix it has.
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
