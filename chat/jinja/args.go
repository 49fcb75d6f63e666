package jinja

import (
	"slices"

	"github.com/ingotml/ingot/limits"
)

func (c *callArgs) eval(r *renderer, e *env) (*arguments, error) {
	a := &arguments{}
	var err error
	if len(c.pos) > 0 {
		if a.pos, err = evalAll(r, e, c.pos); err != nil {
			return nil, err
		}
	}
	if len(c.named) > 0 {
		if a.named, err = evalAll(r, e, c.named); err != nil {
			return nil, err
		}
		a.names = slices.Clone(c.names)
	}
	if c.dynPos != nil {
		v, err := c.dynPos.eval(r, e)
		if err != nil {
			return nil, err
		}
		more, err := r.run.collect(v)
		if err != nil {
			return nil, err
		}
		a.pos = append(slices.Clip(a.pos), more...)
	}
	if c.dynNamed != nil {
		v, err := c.dynNamed.eval(r, e)
		if err != nil {
			return nil, err
		}
		d, ok := v.(*Dict)
		if !ok {
			return nil, typeError("argument after ** must be a mapping, not %s", typeName(v))
		}
		for i, k := range d.allKeys() {
			name, ok := k.(string)
			if !ok {
				return nil, typeError("keywords must be strings")
			}
			if slices.Contains(a.names, name) {
				return nil, typeError("got multiple values for keyword argument '%s'", name)
			}
			a.names, a.named = append(a.names, name), append(a.named, d.allValues()[i])
			if len(a.names) > limits.TemplateArguments {
				return nil, limitError("more than %d named arguments", limits.TemplateArguments)
			}
		}
	}
	return a, nil
}
