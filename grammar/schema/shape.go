package schema

import (
	"slices"

	"github.com/ingotml/ingot/grammar/dfa"
	"github.com/ingotml/ingot/grammar/number"
	"github.com/ingotml/ingot/grammar/value"
)

func (s *shape) addPattern(p textPattern) {
	if !slices.Contains(s.strings.patterns, p) {
		s.strings.patterns = append(s.strings.patterns, p)
	}
}

// bars reports whether s excludes a boolean or null.
func (s *shape) bars(word string) bool {
	return slices.ContainsFunc(s.barred, func(v *value.Value) bool {
		return v.Kind&(value.Boolean|value.Null) != 0 && string(v.Dump(nil, false)) == word
	})
}

// shape is the merged constraints of several schemas on a value.
type shape struct {
	types  value.Types
	bare   bool // a single union and no other constraint
	consts *[]*value.Value
	barred []*value.Value // constants that the value must not be
	terms  []term         // all that was merged, for constants
	unions []union        // one alternative of each must hold
	held   []held         // every schema and keyword that was merged

	numbers number.Rule
	strings textRule

	objects    []objectPart
	required   []string
	absent     []string
	minMembers int
	maxMembers *int
	names      []term        // propertyNames
	closed     []unevaluated // unevaluatedProperties
	extras     []extra

	arrays     []arrayPart
	minItems   int
	maxItems   *int
	contains   []containsPart
	unique     bool
	closedList []unevaluated // unevaluatedItems
}

// union is alternatives of which one must hold, or, if one is set, exactly one.
type union struct {
	parts []term
	one   bool
}

// textRule is what a string must satisfy.
type textRule struct {
	minLength int
	maxLength *int
	patterns  []textPattern
}

// textPattern is a pattern or a format.
type textPattern struct {
	source          string
	format, negated bool
}

// objectPart is one schema's properties and its constraint on all others.
type objectPart struct {
	names      []string
	properties map[string]term
	patterns   []patternPart
	others     *term // nil: no constraint
	scope      *scope
	silent     bool // the part adds no names to the object's
}

// patternPart is an entry of patternProperties.
type patternPart struct {
	pattern string
	dfa     *dfa.DFA
	term    term
}

// arrayPart is one schema's first items and its constraint on all others.
type arrayPart struct {
	prefix []term
	others *term // nil: no constraint
	scope  *scope
}

// containsPart is a number of items that must match a schema; most < 0: unbounded.
type containsPart struct {
	term        term
	least, most int
}

// unevaluated is a constraint on what the schemas within a scope say nothing about.
type unevaluated struct {
	scope *scope
	term  term
}

// extra requires a property that a negated schema does not allow: ways returns the terms of which one makes a property
// of this name such a one.
type extra struct {
	ways func(name string) []term
}

func (s *shape) clone() *shape {
	c := *s
	c.bare = false
	c.barred, c.terms, c.unions = slices.Clip(s.barred), slices.Clip(s.terms), slices.Clip(s.unions)
	c.held = slices.Clip(s.held)
	c.numbers.Multiples = slices.Clip(s.numbers.Multiples)
	c.numbers.NotMultiples = slices.Clip(s.numbers.NotMultiples)
	c.strings.patterns = slices.Clip(s.strings.patterns)
	c.objects, c.arrays, c.names = slices.Clip(s.objects), slices.Clip(s.arrays), slices.Clip(s.names)
	c.required, c.absent = slices.Clip(s.required), slices.Clip(s.absent)
	c.contains, c.closed, c.closedList = slices.Clip(s.contains), slices.Clip(s.closed), slices.Clip(s.closedList)
	c.extras = slices.Clip(s.extras)
	return &c
}

// free reports whether s has no constraint but the types.
func (s *shape) free() bool {
	return s.consts == nil && len(s.barred) == 0 && len(s.unions) == 0 && s.freeNumbers() && s.freeStrings() &&
		s.freeObjects() && s.freeArrays()
}

func (s *shape) freeNumbers() bool {
	n := &s.numbers
	return n.Low == nil && n.High == nil && len(n.Multiples)+len(n.NotMultiples) == 0
}

func (s *shape) freeStrings() bool {
	return s.strings.minLength == 0 && s.strings.maxLength == nil && len(s.strings.patterns) == 0
}

func (s *shape) freeObjects() bool {
	return len(s.objects)+len(s.required)+len(s.absent)+len(s.names)+len(s.closed)+len(s.extras) == 0 &&
		s.minMembers == 0 && s.maxMembers == nil
}

func (s *shape) freeArrays() bool {
	return len(s.arrays)+len(s.contains)+len(s.closedList) == 0 && s.minItems == 0 && s.maxItems == nil && !s.unique
}

// only restricts the constants of s to values.
func (s *shape) only(values []*value.Value) {
	kept := values
	if s.consts != nil {
		kept = nil
		had := value.NewConstants(*s.consts)
		for _, v := range values {
			if had.Has(v) {
				kept = append(kept, v)
			}
		}
	}
	s.consts = &kept
}

// require adds a name to those that an object must have.
func (s *shape) require(name string) {
	if !slices.Contains(s.required, name) {
		s.required = append(s.required, name)
	}
}
