package jinja

import (
	"strings"
)

// maxRange is the sandbox's limit for the length of a range.
const maxRange = 100000

// globals are the names that are defined in every template.
var globals map[string]Value

// dictType is the global dict: a function with the attribute fromkeys.
type dictType struct{ fn builtin }

func (d *dictType) typeName() string { return "TemplateDict" }

func (d *dictType) call(r *run, a *arguments) (Value, error) { return r.callBuiltin(&d.fn, a) }

func (d *dictType) attr(_ *run, name string) (Value, bool, error) {
	if name == "fromkeys" {
		return bound(name, nil, dictFromKeys), true, nil
	}
	return nil, false, nil
}

func init() {
	fn := func(name string, f func(r *run, a *arguments) (Value, error)) *builtin {
		return &builtin{name: name, fn: f}
	}
	globals = map[string]Value{
		"range":     fn("range", makeRange),
		"dict":      &dictType{builtin{name: "dict", fn: func(r *run, a *arguments) (Value, error) { return r.makeDict(a) }}},
		"namespace": fn("namespace", makeNamespace),
		"cycler": fn("cycler", func(r *run, a *arguments) (Value, error) {
			if len(a.pos) == 0 {
				return nil, raise("RuntimeError", "at minWords one item has to be provided")
			}
			return &cycler{items: a.pos}, a.noNames("Cycler")
		}),
		"joiner": fn("joiner", func(r *run, a *arguments) (Value, error) {
			v, err := a.bind("Joiner", "sep?")
			if err != nil {
				return nil, err
			}
			return &joiner{sep: optional(v[0], ", ")}, nil
		}),
		"lipsum": unsupportedFeature("function", "lipsum"),
		"raise_exception": fn("raise_exception", func(r *run, a *arguments) (Value, error) {
			v, err := a.bind("raise_exception", "message")
			if err != nil {
				return nil, err
			}
			s, err := r.str(v[0])
			if err != nil {
				return nil, err
			}
			return nil, raise("TemplateError", "%s", s)
		}),
		"strftime_now": fn("strftime_now", func(r *run, a *arguments) (Value, error) {
			v, err := a.bind("strftime_now", "format")
			if err != nil {
				return nil, err
			}
			layout, err := needText(v[0], "strftime() argument 1")
			if err != nil {
				return nil, err
			}
			s, err := r.strftime(r.now(), layout)
			return s, err
		}),
	}
}

func makeRange(r *run, a *arguments) (Value, error) {
	if err := a.noNames("range"); err != nil {
		return nil, err
	}
	if len(a.pos) == 0 || len(a.pos) > 3 {
		return nil, typeError("range expected 1 to 3 arguments, got %d", len(a.pos))
	}
	n := [3]int64{0, 0, 1}
	for i, v := range a.pos {
		if _, ok := integer(v); !ok {
			return nil, typeError("'%s' object cannot be interpreted as an integer", typeName(v))
		}
		x, ok := smallInt(v)
		if !ok || x > 1<<60 || x < -1<<60 {
			return nil, raise("OverflowError", "Range too big.")
		}
		n[i] = x
	}
	if len(a.pos) == 1 {
		n[0], n[1] = 0, n[0]
	}
	if n[2] == 0 {
		return nil, valueError("range() arg 3 must not be zero")
	}
	c := &Range{start: n[0], stop: n[1], step: n[2]}
	switch {
	case c.step > 0 && c.start < c.stop:
		c.n = (c.stop-c.start-1)/c.step + 1
	case c.step < 0 && c.start > c.stop:
		c.n = (c.start-c.stop-1)/-c.step + 1
	}
	if c.n > maxRange {
		return nil, raise("OverflowError", "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
	}
	return c, nil
}

// makeDict is Python's dict(...), from a mapping or pairs, and keywords.
func (r *run) makeDict(a *arguments) (*Dict, error) {
	d := NewDict()
	if len(a.pos) > 1 {
		return nil, typeError("dict expected at maxWords 1 argument, got %d", len(a.pos))
	}
	if len(a.pos) == 1 {
		if src, ok := a.pos[0].(*Dict); ok {
			d = src.clone()
		} else {
			if u, ok := a.pos[0].(*undefined); ok {
				return nil, u.fail() // the reference reads its keys
			}
			items, err := r.collect(a.pos[0])
			if err != nil {
				return nil, err
			}
			for i, x := range items {
				kv, err := r.collect(x)
				if err != nil {
					return nil, typeError("cannot convert dictionary update sequence element #%d to a sequence", i)
				}
				if len(kv) != 2 {
					return nil, valueError("dictionary update sequence element #%d has length %d; 2 is required", i, len(kv))
				}
				if err := d.Set(kv[0], kv[1]); err != nil {
					return nil, err
				}
			}
		}
	}
	for i, n := range a.names {
		d.set(n, a.named[i])
	}
	return d, r.alloc(2 * d.Len() * valueSize)
}

func makeNamespace(r *run, a *arguments) (Value, error) {
	d, err := r.makeDict(a)
	if err != nil {
		return nil, err
	}
	for _, k := range d.allKeys() {
		if s, ok := k.(string); ok && strings.HasPrefix(s, "_") {
			return nil, raise("SecurityError", "underscore-prefixed attributes cannot be stored on a namespace, but got '%s'", s)
		}
	}
	return &namespace{d}, nil
}

// cycler yields its items in turn.
type cycler struct {
	items []Value
	pos   int
}

func (c *cycler) typeName() string { return "Cycler" }

func (c *cycler) attr(_ *run, name string) (Value, bool, error) {
	switch name {
	case "items":
		return tuple(c.items...), true, nil
	case "pos":
		return int64(c.pos), true, nil
	case "current":
		return c.items[c.pos], true, nil
	case "next":
		return &builtin{name: name, fn: func(r *run, a *arguments) (Value, error) {
			if _, err := a.bind(name); err != nil {
				return nil, err
			}
			v := c.items[c.pos]
			c.pos = (c.pos + 1) % len(c.items)
			return v, nil
		}}, true, nil
	case "reset":
		return &builtin{name: name, fn: func(r *run, a *arguments) (Value, error) {
			_, err := a.bind(name)
			c.pos = 0
			return nil, err
		}}, true, nil
	}
	return nil, false, nil
}

// joiner yields "" first and then its separator.
type joiner struct {
	sep  Value
	used bool
}

func (j *joiner) typeName() string { return "Joiner" }

func (j *joiner) attr(_ *run, name string) (Value, bool, error) {
	switch name {
	case "sep":
		return j.sep, true, nil
	case "used":
		return j.used, true, nil
	}
	return nil, false, nil
}

func (j *joiner) call(_ *run, a *arguments) (Value, error) {
	if len(a.pos)+len(a.names) > 0 {
		return nil, typeError("__call__() takes no arguments")
	}
	if !j.used {
		j.used = true
		return "", nil
	}
	return j.sep, nil
}

// globalNamed returns the value that every template has under a name.
func globalNamed(name string) (Value, bool) {
	v, ok := globals[name]
	return v, ok
}
