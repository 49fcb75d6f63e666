package schema

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/grammar/dfa"
	"github.com/ingotml/ingot/grammar/expr"
)

// group is unlisted properties that the same schemas apply to: those whose names are texts.
type group struct {
	names *dfa.DFA // nil: any name
	key   string   // identifies names, if not empty
	terms conjunction
}

// expr matches the names. Alternatives of one object share it.
func (g *group) expr(c *compiler) *expr.Expr {
	if g.key == "" {
		return g.names.Expr()
	}
	e := c.once[g.key]
	if e == nil {
		e = g.names.Expr()
		c.once[g.key] = e
	}
	return e
}

// groups returns the unlisted properties of s by the patterns that their names match.
func (c *compiler) groups(s *shape, names []string, path string) []group {
	var patterns []patternPart
	for _, o := range s.objects {
		for _, p := range o.patterns {
			if !slices.ContainsFunc(patterns, func(q patternPart) bool { return q.pattern == p.pattern }) {
				patterns = append(patterns, p)
			}
		}
	}
	var all *dfa.DFA
	if len(s.names) > 0 {
		all = c.nameTexts(s.names, path)
	}
	key := ""
	if known := append(slices.Clone(names), s.absent...); len(known) > 0 && c.err == nil {
		rest, err := c.notWords(known)
		switch {
		case err != nil:
		case all == nil:
			all = rest
			if len(patterns) == 0 {
				key = namesKey(known)
			}
		default:
			all, err = dfa.Intersect(all, rest)
		}
		c.failAt(path, err)
	}
	if c.err != nil {
		return nil
	}
	type cell struct {
		names   *dfa.DFA
		matched []string
	}
	cells := []cell{{all, nil}}
	for _, p := range patterns {
		var next []cell
		for _, at := range cells {
			if at.names == nil {
				at.names = dfa.Any()
			}
			in, err := dfa.Intersect(at.names, p.dfa)
			if err == nil && !in.Empty() {
				next = append(next, cell{in, append(slices.Clone(at.matched), p.pattern)})
			}
			out, err2 := dfa.Minus(at.names, p.dfa)
			if err2 == nil && !out.Empty() {
				next = append(next, cell{out, at.matched})
			}
			if c.failAt(path, err); c.err == nil {
				c.failAt(path, err2)
			}
			if len(next) > maxGroups {
				c.fail(expr.ErrLimit, path, "patternProperties combine in more than %d ways", maxGroups)
			}
			if c.err != nil {
				return nil
			}
		}
		cells = next
	}
	var groups []group
	for _, at := range cells {
		if at.names != nil && at.names.Empty() {
			continue
		}
		groups = append(groups, group{at.names, key, s.combine(func(o *objectPart) (all []term) {
			for _, p := range o.patterns {
				if slices.Contains(at.matched, p.pattern) {
					all = append(all, p.term)
				}
			}
			if len(all) == 0 && o.others != nil {
				all = append(all, *o.others)
			}
			return all
		})})
	}
	return groups
}

// namesKey identifies a set of names.
func namesKey(names []string) string {
	sorted := slices.Sorted(slices.Values(names))
	return fmt.Sprintf("names %q", slices.Compact(sorted))
}

// notWords returns the names beside known ones.
func (c *compiler) notWords(known []string) (*dfa.DFA, error) {
	key := namesKey(known)
	if d := c.patterns[key]; d != nil {
		return d, nil
	}
	d, err := dfa.NotWords(known, c.nameDepth())
	if err == nil {
		c.nameStates += d.States()
		c.patterns[key] = d
	}
	return d, err
}

// nameDepth returns how many characters of listed names tell other names apart. Schemas with very many properties have
// fewer other names: those that begin like a listed one are left out.
func (c *compiler) nameDepth() int {
	switch {
	case c.nameStates < 1<<13:
		return 1 << 20
	case c.nameStates < 1<<15:
		return 4
	}
	return 2
}

// maxGroups bounds the ways in which patterns combine.
const maxGroups = 64

// other is unlisted properties with one schema: their names, and what follows.
type other struct{ name, value *expr.Expr }

func (o other) member() *expr.Expr { return expr.Seq(o.name, o.value) }

// next matches a property whose name differs from those before it, and its separator.
func (o other) next() *expr.Expr {
	return expr.Seq(expr.Distinct(expr.Seq(expr.Text(", "), o.name)), o.value)
}
