package jinja

import (
	"github.com/ingotml/ingot/chat/jinja/value"
)

func (s *outputStmt) exec(r *renderer, e *env) (control, error) {
	r.run.Work(len(s.items))
	for i, x := range s.items {
		if d, ok := x.(*dataExpr); ok {
			if err := r.write(d.text); err != nil {
				return ctlNext, value.AtLine(err, s.lines[i])
			}
			continue
		}
		v, err := x.eval(r, e)
		if err != nil {
			return ctlNext, value.AtLine(err, s.lines[i])
		}
		t, err := r.run.Str(v)
		if err == nil {
			err = r.write(t)
		}
		if err != nil {
			return ctlNext, value.AtLine(err, s.lines[i])
		}
	}
	return ctlNext, nil
}

func (d *dataExpr) eval(*renderer, *env) (value.Value, error) { return d.text, nil }

func (s *ifStmt) exec(r *renderer, e *env) (control, error) {
	for i, test := range s.tests {
		v, err := test.eval(r, e)
		if err != nil {
			return ctlNext, value.AtLine(err, s.line)
		}
		ok, err := r.run.Truth(v)
		if err != nil {
			return ctlNext, value.AtLine(err, s.line)
		}
		if ok {
			return r.execAll(s.bodies[i], e)
		}
	}
	return r.execAll(s.other, e)
}

// assign assigns to a target: a name, an attribute of a namespace, or a tuple of targets.
func (r *renderer) assign(target expr, v value.Value, e *env) error {
	switch t := target.(type) {
	case *nameExpr:
		*e.at(t.ref) = v
	case *nsRef:
		ns, ok := (*e.at(t.ref)).(*value.Namespace)
		if !ok {
			return value.Raise("TemplateRuntimeError", "cannot assign attribute on non-namespace object")
		}
		if err := r.run.Alloc(value.Overhead); err != nil {
			return err
		}
		return ns.Set(t.attr, v)
	case *tupleExpr:
		if err := value.CheckIterable(v); err != nil {
			return value.TypeError("cannot unpack non-iterable %s object", value.TypeName(v))
		}
		it, _ := value.Iterate(v)
		items := make([]value.Value, 0, len(t.items))
		for {
			x, ok, err := it.Step()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if len(items) == len(t.items) {
				return value.ValueError("too many values to unpack (expected %d)", len(t.items))
			}
			items = append(items, x)
		}
		if len(items) < len(t.items) {
			return value.ValueError("not enough values to unpack (expected %d, got %d)", len(t.items), len(items))
		}
		for i, x := range t.items {
			if err := r.assign(x, items[i], e); err != nil {
				return err
			}
		}
	default:
		return value.Raise("TemplateRuntimeError", "cannot assign to this expression")
	}
	return nil
}

// checkNamespaces rejects attribute targets that are not namespaces before the value is evaluated.
func checkNamespaces(target expr, e *env) error {
	switch t := target.(type) {
	case *nsRef:
		if _, ok := (*e.at(t.ref)).(*value.Namespace); !ok {
			return value.Raise("TemplateRuntimeError", "cannot assign attribute on non-namespace object")
		}
	case *tupleExpr:
		for _, x := range t.items {
			if err := checkNamespaces(x, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func export(names []*nameExpr, e *env) {
	for _, n := range names {
		e.ctx.vars[n.name] = *e.at(n.ref)
	}
}

func (s *setStmt) exec(r *renderer, e *env) (control, error) {
	if err := checkNamespaces(s.target, e); err != nil {
		return ctlNext, value.AtLine(err, s.line)
	}
	v, err := s.value.eval(r, e)
	if err == nil {
		err = r.assign(s.target, v, e)
	}
	export(s.exports, e)
	return ctlNext, value.AtLine(err, s.line)
}

func (s *setBlock) exec(r *renderer, e *env) (control, error) {
	s.scope.prepare(e)
	text, c, err := r.capture(func() (control, error) { return r.execAll(s.body, e) })
	if err != nil || c != ctlNext {
		return c, err
	}
	var v value.Value = text
	if s.filter != nil {
		v, err = r.filterText(s.filter, text, e)
	}
	if err == nil {
		err = r.assign(s.target, v, e)
	}
	export(s.exports, e)
	return ctlNext, value.AtLine(err, s.line)
}

// filterText applies the filters of a block to its text.
func (r *renderer) filterText(filter expr, text string, e *env) (value.Value, error) {
	f := filter.(*filterExpr)
	var in value.Value = text
	if f.x != nil {
		var err error
		if in, err = r.filterText(f.x, text, e); err != nil {
			return nil, err
		}
	}
	return f.apply(r, in, e)
}

func (s *filterStmt) exec(r *renderer, e *env) (control, error) {
	s.scope.prepare(e)
	text, c, err := r.capture(func() (control, error) { return r.execAll(s.body, e) })
	if err != nil || c != ctlNext {
		return c, err
	}
	v, err := r.filterText(s.filter, text, e)
	if err == nil {
		err = r.writeText(v)
	}
	return ctlNext, value.AtLine(err, s.line)
}

// writeText writes the result of a filter or call block, which must be a string: the reference does not convert it.
func (r *renderer) writeText(v value.Value) error {
	t, ok := v.(string)
	if !ok {
		return value.TypeError("sequence item 0: expected str instance, %s found", value.TypeName(v))
	}
	return r.write(t)
}

func (s *withStmt) exec(r *renderer, e *env) (control, error) {
	s.scope.prepare(e)
	for i, target := range s.targets {
		v, err := s.values[i].eval(r, e)
		if err == nil {
			err = r.assign(target, v, e)
		}
		if err != nil {
			return ctlNext, value.AtLine(err, s.line)
		}
	}
	return r.execAll(s.body, e)
}

func (s *controlStmt) exec(*renderer, *env) (control, error) { return s.what, nil }
