package jinja

import "strings"

func (x *constExpr) eval(r *renderer, _ *env) (Value, error) {
	r.run.work(1)
	return x.v, nil
}

func (x *nameExpr) eval(r *renderer, e *env) (Value, error) {
	r.run.work(1)
	v := *e.at(x.ref)
	if v == missing {
		return undefinedName(x.name), nil
	}
	return v, nil
}

func (x *nsRef) eval(r *renderer, e *env) (Value, error) {
	return nil, raise("TemplateRuntimeError", "namespace attribute is only a target")
}

func evalAll(r *renderer, e *env, list []expr) ([]Value, error) {
	if err := r.run.alloc(len(list) * valueSize); err != nil {
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

func (x *tupleExpr) eval(r *renderer, e *env) (Value, error) {
	items, err := evalAll(r, e, x.items)
	return &Tuple{Items: items}, err
}

func (x *listExpr) eval(r *renderer, e *env) (Value, error) {
	items, err := evalAll(r, e, x.items)
	return &List{items}, err
}

func (x *dictExpr) eval(r *renderer, e *env) (Value, error) {
	d := NewDict()
	if err := r.run.alloc(2 * len(x.keys) * valueSize); err != nil {
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

func (x *condExpr) eval(r *renderer, e *env) (Value, error) {
	v, err := x.test.eval(r, e)
	if err != nil {
		return nil, err
	}
	yes, err := r.run.truth(v)
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

func (x *andExpr) eval(r *renderer, e *env) (Value, error) {
	v, err := x.l.eval(r, e)
	if err != nil {
		return nil, err
	}
	if yes, err := r.run.truth(v); !yes || err != nil {
		return v, err
	}
	return x.r.eval(r, e)
}

func (x *orExpr) eval(r *renderer, e *env) (Value, error) {
	v, err := x.l.eval(r, e)
	if err != nil {
		return nil, err
	}
	if yes, err := r.run.truth(v); yes || err != nil {
		return v, err
	}
	return x.r.eval(r, e)
}

func (x *notExpr) eval(r *renderer, e *env) (Value, error) {
	v, err := x.x.eval(r, e)
	if err != nil {
		return nil, err
	}
	yes, err := r.run.truth(v)
	return !yes, err
}

func (x *unaryExpr) eval(r *renderer, e *env) (Value, error) {
	v, err := x.x.eval(r, e)
	if err != nil {
		return nil, err
	}
	v, err = r.run.unary(x.op, v)
	return v, atLine(err, x.line)
}

func (x *binExpr) eval(r *renderer, e *env) (Value, error) {
	a, err := x.l.eval(r, e)
	if err != nil {
		return nil, err
	}
	b, err := x.r.eval(r, e)
	if err != nil {
		return nil, err
	}
	v, err := binaryOp(r.run, x.op, a, b)
	return v, atLine(err, x.line)
}

func (x *concatExpr) eval(r *renderer, e *env) (Value, error) {
	var b strings.Builder
	for _, i := range x.items {
		v, err := i.eval(r, e)
		if err != nil {
			return nil, err
		}
		s, err := r.run.str(v)
		if err != nil {
			return nil, err
		}
		if err := r.run.alloc(len(s)); err != nil {
			return nil, err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

func (x *compareExpr) eval(r *renderer, e *env) (Value, error) {
	a, err := x.first.eval(r, e)
	if err != nil {
		return nil, err
	}
	for i, op := range x.ops {
		b, err := x.rest[i].eval(r, e)
		if err != nil {
			return nil, err
		}
		ok, err := r.run.compare(op, a, b)
		if !ok || err != nil {
			return ok, atLine(err, x.line)
		}
		a = b
	}
	return true, nil
}

func (x *attrExpr) eval(r *renderer, e *env) (Value, error) {
	v, err := x.x.eval(r, e)
	if err != nil {
		return nil, err
	}
	v, err = getattr(r.run, v, x.name)
	return v, atLine(err, x.line)
}

func (x *itemExpr) eval(r *renderer, e *env) (Value, error) {
	v, err := x.x.eval(r, e)
	if err != nil {
		return nil, err
	}
	arg, err := x.arg.eval(r, e)
	if err != nil {
		return nil, err
	}
	if s, ok := arg.(*slice); ok {
		if v, err = r.run.slice(v, s); x.folded && isKind(err, "TypeError") {
			return undefinedOf(v, s), nil
		}
	} else {
		v, err = getitem(r.run, v, arg)
	}
	return v, atLine(err, x.line)
}

func (x *sliceExpr) eval(r *renderer, e *env) (Value, error) {
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

func (x *callExpr) eval(r *renderer, e *env) (Value, error) {
	fn, err := x.fn.eval(r, e)
	if err != nil {
		return nil, err
	}
	a, err := x.args.eval(r, e)
	if err != nil {
		return nil, atLine(err, x.line)
	}
	v, err := r.run.call(fn, a)
	return v, atLine(err, x.line)
}

func (x *filterExpr) eval(r *renderer, e *env) (Value, error) {
	v, err := x.x.eval(r, e)
	if err != nil {
		return nil, err
	}
	return x.apply(r, v, e)
}

func (x *filterExpr) apply(r *renderer, v Value, e *env) (Value, error) {
	a, err := x.args.eval(r, e)
	if err != nil {
		return nil, atLine(err, x.line)
	}
	if x.fn == nil {
		return nil, atLine(raise("TemplateRuntimeError", "No filter named '%s' found.", x.name), x.line)
	}
	a.pos = append([]Value{v}, a.pos...)
	v, err = r.run.callBuiltin(x.fn, a)
	return v, atLine(err, x.line)
}

func (x *testExpr) eval(r *renderer, e *env) (Value, error) {
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
	v, err = r.run.callBuiltin(x.fn, a)
	return v, atLine(err, x.line)
}
