package schema

import "slices"

// Schemas often repeat alternatives: each of ten conditions asks for one of the same three definitions. Their
// combinations are 3 to the 10, but after the first choice most of the others hold already.

// held identifies a schema, or a keyword of it, that a shape satisfies.
type held struct {
	schema *value
	not    bool
	only   string
	outer  string
}

func (t term) held() held { return held{t.schema, t.not, t.only, t.outer} }

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
	ref := t.schema.get("$ref")
	if t.schema.kind != typeObject || t.only != "" || ref == nil || ref.kind != typeString {
		return t, false
	}
	t.in = c.doc.resourceOf(t.schema, t.in)
	if !t.in.dialect.refAlone() {
		for _, k := range t.schema.keys {
			if k != "$ref" && c.applies(t, k) {
				return t, false
			}
		}
	}
	before := c.err
	to, ok = c.target(ref.text, t)
	ok = ok && c.err == before
	c.err = before // the reference fails when its alternative is merged
	return to, ok
}
