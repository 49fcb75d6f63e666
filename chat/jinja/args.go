package jinja

import (
	"slices"

	"github.com/ingotml/ingot/chat/jinja/value"
	"github.com/ingotml/ingot/internal/limits"
)

func (c *callArgs) eval(r *renderer, e *env) (*value.Arguments, error) {
	a := &value.Arguments{}
	var err error
	if len(c.pos) > 0 {
		if a.Pos, err = evalAll(r, e, c.pos); err != nil {
			return nil, err
		}
	}
	if len(c.named) > 0 {
		if a.Named, err = evalAll(r, e, c.named); err != nil {
			return nil, err
		}
		a.Names = slices.Clone(c.names)
	}
	if c.dynPos != nil {
		v, err := c.dynPos.eval(r, e)
		if err != nil {
			return nil, err
		}
		more, err := r.run.Collect(v)
		if err != nil {
			return nil, err
		}
		a.Pos = append(slices.Clip(a.Pos), more...)
	}
	if c.dynNamed != nil {
		v, err := c.dynNamed.eval(r, e)
		if err != nil {
			return nil, err
		}
		d, ok := v.(*value.Dict)
		if !ok {
			return nil, value.TypeError("argument after ** must be a mapping, not %s", value.TypeName(v))
		}
		for i, k := range d.Keys() {
			name, ok := k.(string)
			if !ok {
				return nil, value.TypeError("keywords must be strings")
			}
			if slices.Contains(a.Names, name) {
				return nil, value.TypeError("got multiple values for keyword argument '%s'", name)
			}
			a.Names, a.Named = append(a.Names, name), append(a.Named, d.Values()[i])
			if len(a.Names) > limits.TemplateArguments {
				return nil, value.LimitError("more than %d named arguments", limits.TemplateArguments)
			}
		}
	}
	return a, nil
}
