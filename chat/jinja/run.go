package jinja

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/ingotml/ingot/limits"
)

// valueSize is the estimated memory of a value in bytes: its interface in a list, and what it points to, without a
// string's bytes.
const valueSize = 48

// run is the state of one render.
type run struct {
	ctx      context.Context
	t        *Template
	limits   Limits
	now      func() time.Time
	steps    int64
	checked  int64 // value of steps at the last check of the context
	memory   int64
	depth    int
	maxDepth int // limit of depth
	out      *output
	nested   int // number of open captures
}

// output collects the text of the template or of a captured block.
type output struct{ strings.Builder }

// scopeContext is the Context of the reference. It resolves names that are in no frame.
type scopeContext struct {
	vars   map[string]Value // set at the top level of the template
	parent func(name string) (Value, bool)
}

func (c *scopeContext) resolve(name string) Value {
	if v, ok := c.vars[name]; ok {
		return v
	}
	if v, ok := c.parent(name); ok {
		return v
	}
	return missing
}

// env holds the variables of one call of a function.
type env struct {
	vars   []Value
	parent *env
	ctx    *scopeContext
}

func (r *run) newEnv(fn *function, parent *env, ctx *scopeContext) (*env, error) {
	if err := r.alloc(fn.slots * 16); err != nil {
		return nil, err
	}
	e := &env{vars: make([]Value, fn.slots), parent: parent, ctx: ctx}
	for i := range e.vars {
		e.vars[i] = missing
	}
	return e, nil
}

func (e *env) at(p ref) *Value {
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
			e.vars[op.slot] = missing
		}
	}
}

func (t *Template) render(ctx context.Context, vars *Dict, o Options) (text string, err error) {
	r := &run{ctx: ctx, t: t, limits: o.Limits.WithDefaults(Size(vars)), now: o.Now, out: &output{}}
	if r.now == nil {
		r.now = time.Now
	}
	r.maxDepth = min(r.limits.Depth, limits.TemplateLevels/max(t.levels, 1))
	if err := ctx.Err(); err != nil {
		return "", err
	}
	root := &scopeContext{vars: map[string]Value{}, parent: func(name string) (Value, bool) {
		if v, ok := vars.Get(name); ok {
			return v, true
		}
		v, ok := globals[name]
		return v, ok
	}}
	e, err := r.newEnv(t.root, nil, root)
	if err != nil {
		return "", err
	}
	t.root.scope.prepare(e)
	if _, err := r.execAll(t.root.body, e); err != nil {
		return "", err
	}
	return r.out.String(), nil
}

// tick counts a step.
func (r *run) tick() error {
	r.steps++
	if r.steps-r.checked > 1000 {
		return r.check()
	}
	return nil
}

func (r *run) check() error {
	r.checked = r.steps
	if r.steps > r.limits.Steps {
		return limitError("more than %d steps", r.limits.Steps)
	}
	return r.ctx.Err()
}

// work counts n steps of an expensive operation. The next check enforces the limit.
func (r *run) work(n int) { r.steps += int64(n) }

// alloc counts n bytes of memory.
func (r *run) alloc(n int) error {
	r.memory += int64(n)
	r.steps += int64(n) / 256
	if r.memory > r.limits.Memory {
		return limitError("more than %d bytes of memory", r.limits.Memory)
	}
	return nil
}

func (r *run) allocTimes(n int, times int64) error {
	if n > 0 && times > math.MaxInt32*64/int64(n) {
		return limitError("more than %d bytes of memory", r.limits.Memory)
	}
	return r.alloc(n * int(times))
}

func (r *run) write(s string) error {
	if int64(r.out.Len()+len(s)) > r.limits.Output {
		return limitError("more than %d bytes of output", r.limits.Output)
	}
	if r.nested > 0 {
		if err := r.alloc(len(s)); err != nil {
			return err
		}
	}
	r.out.WriteString(s)
	r.steps += int64(len(s)) / 256
	return nil
}

// enterCall counts a nested call. Each needs a matching leaveCall.
func (r *run) enterCall() error {
	if r.depth++; r.depth > r.maxDepth {
		return &Error{Kind: "RecursionError", Message: "maximum recursion depth exceeded", is: ErrLimit}
	}
	return nil
}

func (r *run) leaveCall() { r.depth-- }

// capture returns the text that fn writes.
func (r *run) capture(fn func() (control, error)) (string, control, error) {
	saved := r.out
	r.out = &output{}
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

func (r *run) execAll(list []stmt, e *env) (control, error) {
	for _, s := range list {
		if err := r.tick(); err != nil {
			return ctlNext, err
		}
		if c, err := s.exec(r, e); c != ctlNext || err != nil {
			return c, err
		}
	}
	return ctlNext, nil
}

// IsLimit reports whether an error is due to Limits or the context rather than to the template itself.
func IsLimit(err error) bool {
	return errors.Is(err, ErrLimit) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
