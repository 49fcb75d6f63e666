package jinja

import "slices"

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
	var a *arguments
	if err == nil {
		a, err = s.call.args.eval(r, e)
	}
	if err != nil {
		return ctlNext, atLine(err, s.line)
	}
	if slices.Contains(a.names, "caller") {
		return ctlNext, atLine(typeError("got multiple values for keyword argument 'caller'"), s.line)
	}
	a.names, a.named = append(a.names, "caller"), append(a.named, caller)
	v, err := r.run.call(fn, a)
	if err == nil {
		err = r.writeText(v)
	}
	return ctlNext, atLine(err, s.line)
}

// call binds the arguments as the reference does and renders the body.
func (m *macro) call(_ *run, a *arguments) (Value, error) {
	r, d := m.r, m.def
	if err := r.run.enterCall(); err != nil {
		return nil, atLine(err, d.line)
	}
	defer r.run.leaveCall()
	e, err := r.newEnv(d.fn, m.env, m.env.ctx)
	if err != nil {
		return nil, atLine(err, d.line)
	}
	names, named := slices.Clone(a.names), slices.Clone(a.named)
	take := func(name string) (Value, bool) {
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
		if i < len(a.pos) {
			*e.at(arg.ref) = a.pos[i]
			continue
		}
		if v, ok := take(arg.name); ok {
			*e.at(arg.ref) = v
		}
		foundCaller = foundCaller || arg.name == "caller"
	}
	if len(a.pos) >= len(d.args) {
		foundCaller = d.takes.explicitCaller
	}
	if d.takes.caller && !foundCaller {
		v, _ := take("caller")
		if v == nil {
			v = &undefined{hint: "No caller defined", obj: missing, name: "caller"}
		}
		*e.at(d.takes.callerRef) = v
	}
	if d.takes.kwargs {
		kw := NewDict()
		for i, n := range names {
			kw.set(n, named[i])
		}
		*e.at(d.takes.kwRef) = kw
	} else if len(names) > 0 {
		if slices.Contains(names, "caller") {
			return nil, typeError("macro '%s' was invoked with two values for the special caller argument", d.name)
		}
		return nil, typeError("macro '%s' takes no keyword argument '%s'", d.name, names[0])
	}
	if d.takes.varargs {
		*e.at(d.takes.varRef) = tuple(a.pos[min(len(a.pos), len(d.args)):]...)
	} else if len(a.pos) > len(d.args) {
		return nil, typeError("macro '%s' takes not more than %d argument(s)", d.name, len(d.args))
	}
	d.fn.scope.prepare(e)
	for i, arg := range d.args {
		p := e.at(arg.ref)
		if *p != missing {
			continue
		}
		if at := i - (len(d.args) - len(d.defaults)); at >= 0 {
			v, err := d.defaults[at].eval(r, e)
			if err != nil {
				return nil, atLine(err, d.line)
			}
			*p = v
			continue
		}
		*p = &undefined{hint: "parameter '" + arg.name + "' was not provided", obj: missing, name: arg.name}
	}
	text, _, err := r.capture(func() (control, error) { return r.execAll(d.body, e) })
	return text, err
}

func (m *macro) typeName() string { return "Macro" }

func (m *macro) repr(*run) (string, error) {
	if m.def.name == "" {
		return "<Macro anonymous>", nil
	}
	return "<Macro " + quote(m.def.name) + ">", nil
}

func (m *macro) attr(_ *run, name string) (Value, bool, error) {
	d := m.def
	switch name {
	case "name":
		if d.name == "" {
			return nil, true, nil
		}
		return d.name, true, nil
	case "arguments":
		t := tuple()
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
var generationSupport = &builtin{name: "_generation_support", fn: func(r *run, a *arguments) (Value, error) {
	return r.call(a.named[0], &arguments{})
}}
