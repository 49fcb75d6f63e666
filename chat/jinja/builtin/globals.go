package builtin

import (
	"strings"

	"github.com/ingotml/ingot/chat/jinja/format"
	"github.com/ingotml/ingot/chat/jinja/value"
)

// globals are the names that are defined in every template.
var globals map[string]value.Value

func init() {
	fn := func(name string, f func(r *value.Run, a *value.Arguments) (value.Value, error)) *value.Builtin {
		return &value.Builtin{Name: name, Fn: f}
	}
	globals = map[string]value.Value{
		"range": fn("range", makeRange),
		"dict": fn("dict", func(r *value.Run, a *value.Arguments) (value.Value, error) {
			d, err := makeDict(r, a)
			return d, err
		}),
		"namespace": fn("namespace", makeNamespace),
		"cycler":    unsupportedFeature("function", "cycler"),
		"joiner": fn("joiner", func(r *value.Run, a *value.Arguments) (value.Value, error) {
			v, err := a.Bind("Joiner", "sep?")
			if err != nil {
				return nil, err
			}
			return &joiner{sep: value.Optional(v[0], ", ")}, nil
		}),
		"lipsum": unsupportedFeature("function", "lipsum"),
		"raise_exception": fn("raise_exception", func(r *value.Run, a *value.Arguments) (value.Value, error) {
			v, err := a.Bind("raise_exception", "message")
			if err != nil {
				return nil, err
			}
			s, err := r.Str(v[0])
			if err != nil {
				return nil, err
			}
			return nil, value.Raise("TemplateError", "%s", s)
		}),
		"strftime_now": fn("strftime_now", func(r *value.Run, a *value.Arguments) (value.Value, error) {
			v, err := a.Bind("strftime_now", "format")
			if err != nil {
				return nil, err
			}
			layout, err := value.NeedText(v[0], "strftime() argument 1")
			if err != nil {
				return nil, err
			}
			s, err := format.Strftime(r, r.Now(), layout)
			return s, err
		}),
	}
}

// makeDict is Python's dict(...), from a mapping or pairs, and keywords.
func makeDict(r *value.Run, a *value.Arguments) (*value.Dict, error) {
	d := value.NewDict()
	if len(a.Pos) > 1 {
		return nil, value.TypeError("dict expected at maxWords 1 argument, got %d", len(a.Pos))
	}
	if len(a.Pos) == 1 {
		if src, ok := a.Pos[0].(*value.Dict); ok {
			d = src.Clone()
		} else {
			if u, ok := a.Pos[0].(*value.Undefined); ok {
				return nil, u.Fail() // the reference reads its keys
			}
			items, err := r.Collect(a.Pos[0])
			if err != nil {
				return nil, err
			}
			for i, x := range items {
				kv, err := r.Collect(x)
				if err != nil {
					return nil, value.TypeError("cannot convert dictionary update sequence element #%d to a sequence", i)
				}
				if len(kv) != 2 {
					return nil, value.ValueError("dictionary update sequence element #%d has length %d; 2 is required", i, len(kv))
				}
				if err := d.Set(kv[0], kv[1]); err != nil {
					return nil, err
				}
			}
		}
	}
	for i, n := range a.Names {
		d.Put(n, a.Named[i])
	}
	return d, r.Alloc(2 * d.Len() * value.Overhead)
}

func makeNamespace(r *value.Run, a *value.Arguments) (value.Value, error) {
	d, err := makeDict(r, a)
	if err != nil {
		return nil, err
	}
	for _, k := range d.Keys() {
		if s, ok := k.(string); ok && strings.HasPrefix(s, "_") {
			return nil, value.Raise("SecurityError",
				"underscore-prefixed attributes cannot be stored on a namespace, but got '%s'", s)
		}
	}
	return &value.Namespace{Attrs: d}, nil
}

// joiner yields "" first and then its separator.
type joiner struct {
	sep  value.Value
	used bool
}

func (j *joiner) TypeName() string { return "Joiner" }

func (j *joiner) Attr(_ *value.Run, name string) (value.Value, bool, error) {
	switch name {
	case "sep":
		return j.sep, true, nil
	case "used":
		return j.used, true, nil
	}
	return nil, false, nil
}

func (j *joiner) Call(_ *value.Run, a *value.Arguments) (value.Value, error) {
	if len(a.Pos)+len(a.Names) > 0 {
		return nil, value.TypeError("__call__() takes no arguments")
	}
	if !j.used {
		j.used = true
		return "", nil
	}
	return j.sep, nil
}

// Global returns the value that every template has under a name.
func Global(name string) (value.Value, bool) {
	v, ok := globals[name]
	return v, ok
}
