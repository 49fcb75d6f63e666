package jinja

import (
	"strings"

	"github.com/ingotml/ingot/chat/jinja/builtin"
	"github.com/ingotml/ingot/chat/jinja/value"
)

func (x *constExpr) eval(r *renderer, _ *env) (value.Value, error) {
	r.run.Work(1)
	return x.v, nil
}

func (x *nameExpr) eval(r *renderer, e *env) (value.Value, error) {
	r.run.Work(1)
	v := *e.at(x.ref)
	if v == value.Missing {
		return value.UndefinedName(x.name), nil
	}
	return v, nil
}

func (x *nsRef) eval(r *renderer, e *env) (value.Value, error) {
	return nil, value.Raise("TemplateRuntimeError", "namespace attribute is only a target")
}

func evalAll(r *renderer, e *env, list []expr) ([]value.Value, error) {
	if err := r.run.Alloc(len(list) * value.Overhead); err != nil {
		return nil, err
	}
	items := make([]value.Value, len(list))
	for i, x := range list {
		v, err := x.eval(r, e)
		if err != nil {
			return nil, err
		}
		items[i] = v
	}
	return items, nil
}

func (x *tupleExpr) eval(r *renderer, e *env) (value.Value, error) {
	items, err := evalAll(r, e, x.items)
	return &value.Tuple{Items: items}, err
}

func (x *listExpr) eval(r *renderer, e *env) (value.Value, error) {
	items, err := evalAll(r, e, x.items)
	return &value.List{Items: items}, err
}

func (x *dictExpr) eval(r *renderer, e *env) (value.Value, error) {
	d := value.NewDict()
	if err := r.run.Alloc(2 * len(x.keys) * value.Overhead); err != nil {
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

func (x *condExpr) eval(r *renderer, e *env) (value.Value, error) {
	v, err := x.test.eval(r, e)
	if err != nil {
		return nil, err
	}
	yes, err := r.run.Truth(v)
	switch {
	case err != nil:
		return nil, err
	case yes:
		return x.yes.eval(r, e)
	case x.no != nil:
		return x.no.eval(r, e)
	}
	return value.UndefinedHint("the inline if-expression evaluated to false and no else section was defined."), nil
}

func (x *andExpr) eval(r *renderer, e *env) (value.Value, error) {
	v, err := x.l.eval(r, e)
	if err != nil {
		return nil, err
	}
	if yes, err := r.run.Truth(v); !yes || err != nil {
		return v, err
	}
	return x.r.eval(r, e)
}

func (x *orExpr) eval(r *renderer, e *env) (value.Value, error) {
	v, err := x.l.eval(r, e)
	if err != nil {
		return nil, err
	}
	if yes, err := r.run.Truth(v); yes || err != nil {
		return v, err
	}
	return x.r.eval(r, e)
}

func (x *notExpr) eval(r *renderer, e *env) (value.Value, error) {
	v, err := x.x.eval(r, e)
	if err != nil {
		return nil, err
	}
	yes, err := r.run.Truth(v)
	return !yes, err
}

func (x *unaryExpr) eval(r *renderer, e *env) (value.Value, error) {
	v, err := x.x.eval(r, e)
	if err != nil {
		return nil, err
	}
	v, err = r.run.Unary(x.op, v)
	return v, value.AtLine(err, x.line)
}

func (x *binExpr) eval(r *renderer, e *env) (value.Value, error) {
	a, err := x.l.eval(r, e)
	if err != nil {
		return nil, err
	}
	b, err := x.r.eval(r, e)
	if err != nil {
		return nil, err
	}
	v, err := builtin.Binary(r.run, x.op, a, b)
	return v, value.AtLine(err, x.line)
}

func (x *concatExpr) eval(r *renderer, e *env) (value.Value, error) {
	var b strings.Builder
	for _, i := range x.items {
		v, err := i.eval(r, e)
		if err != nil {
			return nil, err
		}
		s, err := r.run.Str(v)
		if err != nil {
			return nil, err
		}
		if err := r.run.Alloc(len(s)); err != nil {
			return nil, err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

func (x *compareExpr) eval(r *renderer, e *env) (value.Value, error) {
	a, err := x.first.eval(r, e)
	if err != nil {
		return nil, err
	}
	for i, op := range x.ops {
		b, err := x.rest[i].eval(r, e)
		if err != nil {
			return nil, err
		}
		ok, err := r.run.Compare(op, a, b)
		if !ok || err != nil {
			return ok, value.AtLine(err, x.line)
		}
		a = b
	}
	return true, nil
}

func (x *attrExpr) eval(r *renderer, e *env) (value.Value, error) {
	v, err := x.x.eval(r, e)
	if err != nil {
		return nil, err
	}
	if l, ok := v.(*loopContext); ok { // the most frequent, so it skips the general search
		if v, ok, err := l.Attr(r.run, x.name); ok || err != nil {
			return v, value.AtLine(err, x.line)
		}
	}
	v, err = builtin.Getattr(r.run, v, x.name)
	return v, value.AtLine(err, x.line)
}

func (x *itemExpr) eval(r *renderer, e *env) (value.Value, error) {
	v, err := x.x.eval(r, e)
	if err != nil {
		return nil, err
	}
	arg, err := x.arg.eval(r, e)
	if err != nil {
		return nil, err
	}
	if s, ok := arg.(*value.Slice); ok {
		if v, err = r.run.Slice(v, s); x.folded && value.IsKind(err, "TypeError") {
			return value.UndefinedOf(v, s), nil
		}
	} else {
		v, err = builtin.Getitem(r.run, v, arg)
	}
	return v, value.AtLine(err, x.line)
}

func (x *sliceExpr) eval(r *renderer, e *env) (value.Value, error) {
	s := &value.Slice{}
	for _, p := range []struct {
		x  expr
		to *value.Value
	}{{x.start, &s.Start}, {x.stop, &s.Stop}, {x.step, &s.Step}} {
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

func (x *callExpr) eval(r *renderer, e *env) (value.Value, error) {
	fn, err := x.fn.eval(r, e)
	if err != nil {
		return nil, err
	}
	a, err := x.args.eval(r, e)
	if err != nil {
		return nil, value.AtLine(err, x.line)
	}
	v, err := r.run.Call(fn, a)
	return v, value.AtLine(err, x.line)
}

func (x *filterExpr) eval(r *renderer, e *env) (value.Value, error) {
	v, err := x.x.eval(r, e)
	if err != nil {
		return nil, err
	}
	return x.apply(r, v, e)
}

func (x *filterExpr) apply(r *renderer, v value.Value, e *env) (value.Value, error) {
	a, err := x.args.eval(r, e)
	if err != nil {
		return nil, value.AtLine(err, x.line)
	}
	if x.fn == nil {
		return nil, value.AtLine(value.Raise("TemplateRuntimeError", "No filter named '%s' found.", x.name), x.line)
	}
	a.Pos = append([]value.Value{v}, a.Pos...)
	v, err = r.run.CallBuiltin(x.fn, a)
	return v, value.AtLine(err, x.line)
}

func (x *testExpr) eval(r *renderer, e *env) (value.Value, error) {
	v, err := x.x.eval(r, e)
	if err != nil {
		return nil, err
	}
	a, err := x.args.eval(r, e)
	if err != nil {
		return nil, value.AtLine(err, x.line)
	}
	if x.fn == nil {
		return nil, value.AtLine(value.Raise("TemplateRuntimeError", "No test named '%s' found.", x.name), x.line)
	}
	a.Pos = append([]value.Value{v}, a.Pos...)
	v, err = r.run.CallBuiltin(x.fn, a)
	return v, value.AtLine(err, x.line)
}
