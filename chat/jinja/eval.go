package jinja

import "strings"

func (x *constExpr) eval(r *run, _ *env) (Value, error) {
	r.steps++
	return x.v, nil
}

func (x *nameExpr) eval(r *run, e *env) (Value, error) {
	r.steps++
	v := *e.at(x.ref)
	if v == missing {
		return undefinedName(x.name), nil
	}
	return v, nil
}

func (x *nsRef) eval(r *run, e *env) (Value, error) {
	return nil, raise("TemplateRuntimeError", "namespace attribute is only a target")
}

func evalAll(r *run, e *env, list []expr) ([]Value, error) {
	if err := r.alloc(len(list) * valueSize); err != nil {
		return nil, err
	}
	items := make([]Value, len(list))
	for i, x := range list {
		v, err := x.eval(r, e)
		if err != nil {
			return nil, err
		}
		items[i] = v
	}
	return items, nil
}

func (x *tupleExpr) eval(r *run, e *env) (Value, error) {
	items, err := evalAll(r, e, x.items)
	return &Tuple{Items: items}, err
}

func (x *listExpr) eval(r *run, e *env) (Value, error) {
	items, err := evalAll(r, e, x.items)
	return &List{items}, err
}

func (x *dictExpr) eval(r *run, e *env) (Value, error) {
	d := NewDict()
	if err := r.alloc(2 * len(x.keys) * valueSize); err != nil {
		return nil, err
	}
	for i := range x.keys {
		k, err := x.keys[i].eval(r, e)
		if err != nil {
			return nil, err
		}
		v, err := x.values[i].eval(r, e)
		if err != nil {
			return nil, err
		}
		if err := d.Set(k, v); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (x *condExpr) eval(r *run, e *env) (Value, error) {
	v, err := x.test.eval(r, e)
	if err != nil {
		return nil, err
	}
	yes, err := r.truth(v)
	switch {
	case err != nil:
		return nil, err
	case yes:
		return x.yes.eval(r, e)
	case x.no != nil:
		return x.no.eval(r, e)
	}
	return undefinedHint("the inline if-expression evaluated to false and no else section was defined."), nil
}

func (x *andExpr) eval(r *run, e *env) (Value, error) {
	v, err := x.l.eval(r, e)
	if err != nil {
		return nil, err
	}
	if yes, err := r.truth(v); !yes || err != nil {
		return v, err
	}
	return x.r.eval(r, e)
}

func (x *orExpr) eval(r *run, e *env) (Value, error) {
	v, err := x.l.eval(r, e)
	if err != nil {
		return nil, err
	}
	if yes, err := r.truth(v); yes || err != nil {
		return v, err
	}
	return x.r.eval(r, e)
}

func (x *notExpr) eval(r *run, e *env) (Value, error) {
	v, err := x.x.eval(r, e)
	if err != nil {
		return nil, err
	}
	yes, err := r.truth(v)
	return !yes, err
}

func (x *unaryExpr) eval(r *run, e *env) (Value, error) {
	v, err := x.x.eval(r, e)
	if err != nil {
		return nil, err
	}
	v, err = r.unary(x.op, v)
	return v, atLine(err, x.line)
}

func (x *binExpr) eval(r *run, e *env) (Value, error) {
	a, err := x.l.eval(r, e)
	if err != nil {
		return nil, err
	}
	b, err := x.r.eval(r, e)
	if err != nil {
		return nil, err
	}
	v, err := r.binary(x.op, a, b)
	return v, atLine(err, x.line)
}

func (x *concatExpr) eval(r *run, e *env) (Value, error) {
	var b strings.Builder
	for _, i := range x.items {
		v, err := i.eval(r, e)
		if err != nil {
			return nil, err
		}
		s, err := r.str(v)
		if err != nil {
			return nil, err
		}
		if err := r.alloc(len(s)); err != nil {
			return nil, err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

func (x *compareExpr) eval(r *run, e *env) (Value, error) {
	a, err := x.first.eval(r, e)
	if err != nil {
		return nil, err
	}
	for i, op := range x.ops {
		b, err := x.rest[i].eval(r, e)
		if err != nil {
			return nil, err
		}
		ok, err := r.compare(op, a, b)
		if !ok || err != nil {
			return ok, atLine(err, x.line)
		}
		a = b
	}
	return true, nil
}

func (r *run) compare(op string, a, b Value) (bool, error) {
	switch op {
	case "==":
		return r.equal(a, b)
	case "!=":
		eq, err := r.equal(a, b)
		return !eq, err
	case "in":
		return r.contains(b, a)
	case "not in":
		in, err := r.contains(b, a)
		return !in, err
	}
	return r.ordered(op, a, b, 0)
}

func (x *attrExpr) eval(r *run, e *env) (Value, error) {
	v, err := x.x.eval(r, e)
	if err != nil {
		return nil, err
	}
	v, err = r.getattr(v, x.name)
	return v, atLine(err, x.line)
}

func (x *itemExpr) eval(r *run, e *env) (Value, error) {
	v, err := x.x.eval(r, e)
	if err != nil {
		return nil, err
	}
	arg, err := x.arg.eval(r, e)
	if err != nil {
		return nil, err
	}
	if s, ok := arg.(*slice); ok {
		if v, err = r.slice(v, s); x.folded && isKind(err, "TypeError") {
			return undefinedOf(v, s), nil
		}
	} else {
		v, err = r.getitem(v, arg)
	}
	return v, atLine(err, x.line)
}

func (x *sliceExpr) eval(r *run, e *env) (Value, error) {
	s := &slice{}
	for _, p := range []struct {
		x  expr
		to *Value
	}{{x.start, &s.start}, {x.stop, &s.stop}, {x.step, &s.step}} {
		if p.x == nil {
			continue
		}
		v, err := p.x.eval(r, e)
		if err != nil {
			return nil, err
		}
		*p.to = v
	}
	return s, nil
}

func (x *callExpr) eval(r *run, e *env) (Value, error) {
	fn, err := x.fn.eval(r, e)
	if err != nil {
		return nil, err
	}
	a, err := x.args.eval(r, e)
	if err != nil {
		return nil, atLine(err, x.line)
	}
	v, err := r.call(fn, a)
	return v, atLine(err, x.line)
}

func (x *filterExpr) eval(r *run, e *env) (Value, error) {
	v, err := x.x.eval(r, e)
	if err != nil {
		return nil, err
	}
	return x.apply(r, v, e)
}

func (x *filterExpr) apply(r *run, v Value, e *env) (Value, error) {
	a, err := x.args.eval(r, e)
	if err != nil {
		return nil, atLine(err, x.line)
	}
	if x.fn == nil {
		return nil, atLine(raise("TemplateRuntimeError", "No filter named '%s' found.", x.name), x.line)
	}
	a.pos = append([]Value{v}, a.pos...)
	v, err = r.callBuiltin(x.fn, a)
	return v, atLine(err, x.line)
}

func (x *testExpr) eval(r *run, e *env) (Value, error) {
	v, err := x.x.eval(r, e)
	if err != nil {
		return nil, err
	}
	a, err := x.args.eval(r, e)
	if err != nil {
		return nil, atLine(err, x.line)
	}
	if x.fn == nil {
		return nil, atLine(raise("TemplateRuntimeError", "No test named '%s' found.", x.name), x.line)
	}
	a.pos = append([]Value{v}, a.pos...)
	v, err = r.callBuiltin(x.fn, a)
	return v, atLine(err, x.line)
}
