package schema

import "slices"

// itemTerms returns the schemas of s for an item; from the longest prefix on, all items have the same.
func (s *shape) itemTerms(i int) (all conjunction) {
	var said []*scope
	for _, a := range s.arrays {
		switch {
		case i < len(a.prefix):
			all, said = append(all, a.prefix[i]), append(said, a.scope)
		case a.others != nil:
			all, said = append(all, *a.others), append(said, a.scope)
		}
	}
	return append(all, unsaid(s.closedList, said)...)
}

// unsaid returns the unevaluated keywords for a part that schemas of these scopes say something about: those around
// none of them, nor around another such keyword, which evaluates all parts.
func unsaid(closed []unevaluated, said []*scope) (all []term) {
	for i, u := range closed {
		evaluated := slices.ContainsFunc(said, func(s *scope) bool { return s.within(u.scope) })
		for k, inner := range closed {
			evaluated = evaluated || k != i && inner.scope.within(u.scope)
		}
		if !evaluated {
			all = append(all, u.term)
		}
	}
	return all
}

// termsOf returns the schemas of a part for a property.
func (o *objectPart) termsOf(name string) (all []term) {
	if t, ok := o.properties[name]; ok {
		all = append(all, t)
	}
	for _, p := range o.patterns {
		if p.dfa.Match(name) {
			all = append(all, p.term)
		}
	}
	if len(all) == 0 && o.others != nil {
		all = append(all, *o.others)
	}
	return all
}

// termsOfOthers returns the schemas of a part for properties that it neither lists nor has a pattern for.
func (o *objectPart) termsOfOthers() []term {
	if o.others == nil {
		return nil
	}
	return []term{*o.others}
}

// memberTerms returns the schemas of s for a property.
func (s *shape) memberTerms(name string) conjunction {
	return s.combine(func(o *objectPart) []term { return o.termsOf(name) })
}

// combine returns what the parts of s say about a property, and the unevaluated keywords whose scopes say nothing.
func (s *shape) combine(of func(*objectPart) []term) (all conjunction) {
	var said []*scope
	for i := range s.objects {
		if terms := of(&s.objects[i]); len(terms) > 0 {
			all, said = append(all, terms...), append(said, s.objects[i].scope)
		}
	}
	return append(all, unsaid(s.closed, said)...)
}

// members returns the properties that s lists, in order, then those that are only required.
func (s *shape) members() (names []string) {
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, o := range s.objects {
		if !o.silent {
			for _, name := range o.names {
				add(name)
			}
		}
	}
	for _, name := range s.required {
		add(name)
	}
	for _, o := range s.objects {
		for _, name := range o.names {
			add(name)
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(s.absent, n) })
}
