package jinja

import (
	"context"
	"strings"

	"github.com/ingotml/ingot/chat/jinja/builtin"
	"github.com/ingotml/ingot/chat/jinja/value"
	"github.com/ingotml/ingot/internal/limits"
)

// renderer executes a template's code within the limits of a run.
type renderer struct {
	run    *value.Run
	out    *strings.Builder // text of the template or of the innermost capture
	nested int              // number of open captures
}

// scopeContext is the Context of the reference. It resolves names that are in no frame.
type scopeContext struct {
	vars  map[string]value.Value // set at the top level of the template
	given *value.Dict            // the caller's variables
}

func (c *scopeContext) resolve(name string) value.Value {
	if v, ok := c.vars[name]; ok {
		return v
	}
	if v, ok := c.given.Get(name); ok {
		return v
	}
	if v, ok := builtin.Global(name); ok {
		return v
	}
	return value.Missing
}

// env holds the variables of one call of a function.
type env struct {
	vars   []value.Value
	parent *env
	ctx    *scopeContext
}

func (r *renderer) newEnv(fn *function, parent *env, ctx *scopeContext) (*env, error) {
	if err := r.run.Alloc(fn.slots * 16); err != nil {
		return nil, err
	}
	e := &env{vars: make([]value.Value, fn.slots), parent: parent, ctx: ctx}
	for i := range e.vars {
		e.vars[i] = value.Missing
	}
	return e, nil
}

func (e *env) at(p ref) *value.Value {
	for range p.hops {
		e = e.parent
	}
	return &e.vars[p.slot]
}

// prepare initializes the variables of a frame.
func (s *scope) prepare(e *env) {
	for _, op := range s.enter {
		switch op.kind {
		case loadResolve:
			e.vars[op.slot] = e.ctx.resolve(op.name)
		case loadAlias:
			e.vars[op.slot] = *e.at(op.from)
		default:
			e.vars[op.slot] = value.Missing
		}
	}
}

func (t *Template) render(ctx context.Context, vars *value.Dict, o Options) (string, error) {
	bounds := o.Limits.WithDefaults(value.Size(vars))
	calls := min(bounds.Depth, limits.TemplateLevels/max(t.levels, 1))
	r := &renderer{run: value.NewRun(ctx, bounds, calls, o.Now), out: &strings.Builder{}}
	defer r.run.Done()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	e, err := r.newEnv(t.root, nil, &scopeContext{vars: map[string]value.Value{}, given: vars})
	if err != nil {
		return "", err
	}
	t.root.scope.prepare(e)
	if _, err := r.execAll(t.root.body, e); err != nil {
		return "", err
	}
	return r.out.String(), nil
}

func (r *renderer) write(s string) error {
	if int64(r.out.Len()+len(s)) > r.run.Limits.Output {
		return value.LimitError("more than %d bytes of output", r.run.Limits.Output)
	}
	if r.nested > 0 {
		if err := r.run.Alloc(len(s)); err != nil {
			return err
		}
	}
	r.out.WriteString(s)
	r.run.Work(len(s) / 256)
	return nil
}

// capture returns the text that fn writes.
func (r *renderer) capture(fn func() (control, error)) (string, control, error) {
	saved := r.out
	r.out = &strings.Builder{}
	r.nested++
	c, err := fn()
	text := r.out.String()
	r.out = saved
	r.nested--
	if err != nil {
		return "", c, err
	}
	return text, c, nil
}

func (r *renderer) execAll(list []stmt, e *env) (control, error) {
	for _, s := range list {
		if err := r.run.Tick(); err != nil {
			return ctlNext, err
		}
		if c, err := s.exec(r, e); c != ctlNext || err != nil {
			return c, err
		}
	}
	return ctlNext, nil
}
