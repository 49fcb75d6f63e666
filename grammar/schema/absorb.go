package schema

import (
	"slices"

	"github.com/ingotml/ingot/grammar/value"
)

// Bounds of the search for alternatives that hold already.
const (
	maxHeld        = 512
	maxHeldParts   = 32
	maxHeldAliases = 16
)

// absorb drops the unions of s of which an alternative holds already: what the others ask for would only narrow s.
// Their properties are then among the unlisted ones.
func (c *compiler) absorb(s *shape) {
	if len(s.unions) == 0 || len(s.held) > maxHeld || len(s.extras) > 0 {
		return
	}
	holds := func(t term) bool {
		for range maxHeldAliases {
			if t.scope != nil || t.chain.has(t.schema, t.not) && t.only == "" {
				return false
			}
			if slices.Contains(s.held, t.held()) {
				return true
			}
			to, ok := c.alias(t)
			if !ok {
				return false
			}
			t = to
		}
		return false
	}
	kept := s.unions[:0:0]
	for _, u := range s.unions {
		if u.one || len(u.parts) > maxHeldParts || len(u.parts) < 2 || !slices.ContainsFunc(u.parts, holds) {
			kept = append(kept, u)
		}
	}
	s.unions = kept
}

// alias returns the target of a schema that is a reference and nothing else.
func (c *compiler) alias(t term) (to term, ok bool) {
	ref := t.schema.Get("$ref")
	if t.schema.Kind != value.Object || t.only != "" || ref == nil || ref.Kind != value.String {
		return t, false
	}
	t.in = c.doc.ResourceOf(t.schema, t.in)
	if !t.in.Dialect.RefAlone() {
		for _, k := range t.schema.Keys {
			if k != "$ref" && c.applies(t, k) {
				return t, false
			}
		}
	}
	before := c.err
	to, ok = c.target(ref.Text, t)
	ok = ok && c.err == before
	c.err = before // the reference fails when its alternative is merged
	return to, ok
}
