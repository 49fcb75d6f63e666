package builtin

import (
	"strings"

	"github.com/ingotml/ingot/chat/jinja/value"
)

// filters are jinja2's filters, with transformers' tojson.
var filters map[string]*value.Builtin

func init() {
	filters = map[string]*value.Builtin{}
	add := func(name string, fn func(r *value.Run, v []value.Value) (value.Value, error), params ...string) {
		filters[name] = &value.Builtin{Name: name, Fn: func(r *value.Run, a *value.Arguments) (value.Value, error) {
			v, err := a.Bind(name, params...)
			if err != nil {
				return nil, err
			}
			return fn(r, v)
		}}
	}
	onText := func(name string, fn func(string) string) {
		add(name, func(r *value.Run, v []value.Value) (value.Value, error) {
			s, err := r.Str(v[0])
			if err != nil {
				return nil, err
			}
			return fn(s), r.Alloc(len(s))
		}, "s")
	}
	onText("upper", upper)
	onText("lower", lower)
	onText("capitalize", capitalize)
	add("title", filterTitle, "s")
	add("abs", filterAbs, "/x")
	add("attr", filterAttr, "obj", "name")
	for _, n := range []string{"default", "d"} {
		add(n, filterDefault, "value", "default_value?", "boolean?")
	}
	add("float", filterFloat, "value", "default?")
	add("int", filterInt, "value", "default?", "base?")
	filters["format"] = &value.Builtin{Name: "format", Fn: filterFormat}
	add("indent", filterIndent, "s", "width?", "first?", "blank?")
	for _, n := range []string{"length", "count"} {
		add(n, func(r *value.Run, v []value.Value) (value.Value, error) { n, err := r.Length(v[0]); return n, err }, "/obj")
	}
	add("replace", filterReplace, "s", "old", "new", "count?")
	add("round", filterRound, "value", "precision?", "method?")
	for name, param := range map[string]string{"string": "/s", "safe": "value"} {
		add(name, func(r *value.Run, v []value.Value) (value.Value, error) { s, err := r.Str(v[0]); return s, err }, param)
	}
	add("trim", filterTrim, "value", "chars?")
	add("truncate", filterTruncate, "s", "length?", "killwords?", "end?", "leeway?")
	add("tojson", filterToJSON, "x", "ensure_ascii?", "indent?", "separators?", "sort_keys?")
	addSequenceFilters(add)
	for _, n := range strings.Fields(unsupportedFilters) {
		filters[n] = unsupportedFeature("filter", n)
	}
}

// unsupportedFilters are filters of jinja2 that no published chat template uses: they make HTML, or format for people.
const unsupportedFilters = "batch center e escape filesizeformat forceescape groupby pprint random slice striptags " +
	"urlencode urlize wordcount wordwrap xmlattr"

// unsupportedFeature stands for a filter, test or function of jinja2 that this package leaves out. It fails when it is
// called.
func unsupportedFeature(what, name string) *value.Builtin {
	return &value.Builtin{Name: name, Fn: func(*value.Run, *value.Arguments) (value.Value, error) {
		return nil, value.Raise("TemplateRuntimeError", "the %s '%s' is not supported in chat templates", what, name)
	}}
}

func filterAttr(r *value.Run, v []value.Value) (value.Value, error) {
	name, ok := v[1].(string)
	if !ok {
		return nil, value.TypeError("attribute name must be string, not '%s'", value.TypeName(v[1]))
	}
	x, ok, err := attribute(r, v[0], name)
	if ok || err != nil {
		return x, err
	}
	return value.UndefinedOf(v[0], name), nil
}

func filterDefault(r *value.Run, v []value.Value) (value.Value, error) {
	_, is := v[0].(*value.Undefined)
	if !is && v[2] != value.Missing && value.Truth(v[2]) {
		yes, err := r.Truth(v[0])
		if err != nil {
			return nil, err
		}
		is = !yes
	}
	if is {
		return value.Optional(v[1], ""), nil
	}
	return v[0], nil
}

// Filter returns the filter with a name, or nil.
func Filter(name string) *value.Builtin { return filters[name] }

// filterToJSON is json.dumps as transformers calls it.
func filterToJSON(r *value.Run, v []value.Value) (value.Value, error) {
	style := value.JSONStyle{ASCII: value.IsTrue(v[1]), Sort: value.IsTrue(v[4]), Item: ", ", Key: ": "}
	if v[2] != value.Missing && v[2] != nil {
		style.Item, style.Pretty = ",", true
		if s, ok := v[2].(string); ok {
			style.Indent = s
		} else {
			n, err := value.ClampInt(v[2])
			if err != nil {
				return nil, err
			}
			if style.Indent, err = r.Repeat(" ", max(n, 0)); err != nil {
				return nil, err
			}
		}
	}
	if v[3] != value.Missing && v[3] != nil {
		pair, err := r.Collect(v[3])
		if err != nil {
			return nil, err
		}
		if len(pair) != 2 {
			return nil, value.ValueError("not enough values to unpack (expected 2, got %d)", len(pair))
		}
		if style.Item, err = value.NeedText(pair[0], "item separator"); err != nil {
			return nil, err
		}
		if style.Key, err = value.NeedText(pair[1], "key separator"); err != nil {
			return nil, err
		}
	}
	s, err := r.EncodeJSON(v[0], style)
	return s, err
}
