package jinja

import (
	"slices"

	"github.com/ingotml/ingot/chat/jinja/value"
)

// macro is a macro as a value, with the env of its definition.
type macro struct {
	r   *renderer
	def *macroStmt
	env *env
}

func (s *macroStmt) exec(r *renderer, e *env) (control, error) {
	m := &macro{r, s, e}
	*e.at(s.ref) = m
	if s.export {
		e.ctx.vars[s.name] = m
	}
	return ctlNext, nil
}

func (s *callStmt) exec(r *renderer, e *env) (control, error) {
	caller := &macro{r, s.macro, e}
	fn, err := s.call.fn.eval(r, e)
	var a *value.Arguments
	if err == nil {
		a, err = s.call.args.eval(r, e)
	}
	if err != nil {
		return ctlNext, value.AtLine(err, s.line)
	}
	if slices.Contains(a.Names, "caller") {
		return ctlNext, value.AtLine(value.TypeError("got multiple values for keyword argument 'caller'"), s.line)
	}
	a.Names, a.Named = append(a.Names, "caller"), append(a.Named, caller)
	v, err := r.run.Call(fn, a)
	if err == nil {
		err = r.writeText(v)
	}
	return ctlNext, value.AtLine(err, s.line)
}

// Call binds the arguments as the reference does and renders the body.
func (m *macro) Call(_ *value.Run, a *value.Arguments) (value.Value, error) {
	r, d := m.r, m.def
	if err := r.run.EnterCall(); err != nil {
		return nil, value.AtLine(err, d.line)
	}
	defer r.run.LeaveCall()
	e, err := r.newEnv(d.fn, m.env, m.env.ctx)
	if err != nil {
		return nil, value.AtLine(err, d.line)
	}
	names, named := slices.Clone(a.Names), slices.Clone(a.Named)
	take := func(name string) (value.Value, bool) {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, false
		}
		v := named[i]
		names, named = slices.Delete(names, i, i+1), slices.Delete(named, i, i+1)
		return v, true
	}
	foundCaller := false
	for i, arg := range d.args {
		if i < len(a.Pos) {
			*e.at(arg.ref) = a.Pos[i]
			continue
		}
		if v, ok := take(arg.name); ok {
			*e.at(arg.ref) = v
		}
		foundCaller = foundCaller || arg.name == "caller"
	}
	if len(a.Pos) >= len(d.args) {
		foundCaller = d.takes.explicitCaller
	}
	if d.takes.caller && !foundCaller {
		v, _ := take("caller")
		if v == nil {
			v = &value.Undefined{Hint: "No caller defined", Obj: value.Missing, Name: "caller"}
		}
		*e.at(d.takes.callerRef) = v
	}
	if d.takes.kwargs {
		kw := value.NewDict()
		for i, n := range names {
			kw.Put(n, named[i])
		}
		*e.at(d.takes.kwRef) = kw
	} else if len(names) > 0 {
		if slices.Contains(names, "caller") {
			return nil, value.TypeError("macro '%s' was invoked with two values for the special caller argument", d.name)
		}
		return nil, value.TypeError("macro '%s' takes no keyword argument '%s'", d.name, names[0])
	}
	if d.takes.varargs {
		*e.at(d.takes.varRef) = value.NewTuple(a.Pos[min(len(a.Pos), len(d.args)):]...)
	} else if len(a.Pos) > len(d.args) {
		return nil, value.TypeError("macro '%s' takes not more than %d argument(s)", d.name, len(d.args))
	}
	d.fn.scope.prepare(e)
	for i, arg := range d.args {
		p := e.at(arg.ref)
		if *p != value.Missing {
			continue
		}
		if at := i - (len(d.args) - len(d.defaults)); at >= 0 {
			v, err := d.defaults[at].eval(r, e)
			if err != nil {
				return nil, value.AtLine(err, d.line)
			}
			*p = v
			continue
		}
		*p = &value.Undefined{Hint: "parameter '" + arg.name + "' was not provided", Obj: value.Missing, Name: arg.name}
	}
	text, _, err := r.capture(func() (control, error) { return r.execAll(d.body, e) })
	return text, err
}

func (m *macro) TypeName() string { return "Macro" }

func (m *macro) Repr(*value.Run) (string, error) {
	if m.def.name == "" {
		return "<Macro anonymous>", nil
	}
	return "<Macro " + value.Quote(m.def.name) + ">", nil
}

func (m *macro) Attr(_ *value.Run, name string) (value.Value, bool, error) {
	d := m.def
	switch name {
	case "name":
		if d.name == "" {
			return nil, true, nil
		}
		return d.name, true, nil
	case "arguments":
		t := value.NewTuple()
		for _, a := range d.args {
			t.Items = append(t.Items, a.name)
		}
		return t, true, nil
	case "catch_kwargs":
		return d.takes.kwargs, true, nil
	case "catch_varargs":
		return d.takes.varargs, true, nil
	case "caller":
		return d.takes.caller, true, nil
	case "explicit_caller":
		return d.takes.explicitCaller, true, nil
	}
	return nil, false, nil
}

// generationSupport renders the body of a generation tag, which it gets as its caller.
var generationSupport = &value.Builtin{
	Name: "_generation_support",
	Fn: func(r *value.Run, a *value.Arguments) (value.Value, error) {
		return r.Call(a.Named[0], &value.Arguments{})
	},
}
