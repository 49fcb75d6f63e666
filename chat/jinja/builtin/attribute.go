package builtin

import (
	"strings"

	"github.com/ingotml/ingot/chat/jinja/format"
	"github.com/ingotml/ingot/chat/jinja/value"
)

// dunders are attributes of every Python object, which the sandbox hides.
var dunders = map[string]bool{}

func init() {
	const names = "class delattr dir doc eq format ge getattribute getstate gt hash init init_subclass le lt ne new " +
		"reduce reduce_ex repr setattr sizeof str subclasshook"
	for _, n := range strings.Fields(names) {
		dunders["__"+n+"__"] = true
	}
}

// Mutating methods, which the sandbox hides.
var (
	listMutators = set("append clear pop reverse insert sort extend remove")
	dictMutators = set("clear pop popitem setdefault update")
)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// method is a method of a type.
type method func(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error)

func bound(name string, self value.Value, m method) *value.Builtin {
	return &value.Builtin{Name: name, Fn: func(r *value.Run, a *value.Arguments) (value.Value, error) {
		r.Read(self)
		return m(r, self, a)
	}}
}

// attribute returns Python's getattr(obj, name) in the sandbox. ok is false for an AttributeError.
func attribute(r *value.Run, obj value.Value, name string) (v value.Value, ok bool, err error) {
	if dunders[name] {
		return unsafe(obj, name), true, nil
	}
	var methods map[string]method
	switch o := obj.(type) {
	case string:
		methods = strMethods
	case *value.List:
		if listMutators[name] {
			return unsafe(obj, name), true, nil
		}
		methods = listMethods
	case *value.Tuple:
		methods = tupleMethods
	case *value.Dict:
		if dictMutators[name] {
			return unsafe(obj, name), true, nil
		}
		methods = dictMethods
	case *value.Namespace:
		v, ok := o.Attrs.Get(name)
		return v, ok, nil
	case value.Object:
		return o.Attr(r, name)
	case *value.Undefined:
		if strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") {
			return nil, false, nil
		}
		return nil, false, o.Fail()
	case *value.Range:
		switch name {
		case "start":
			return o.Start, true, nil
		case "stop":
			return o.Stop, true, nil
		case "step":
			return o.Step, true, nil
		}
		methods = tupleMethods
	}
	if m, ok := methods[name]; ok {
		return bound(name, obj, m), true, nil
	}
	return nil, false, nil
}

func unsafe(obj value.Value, name string) *value.Undefined {
	return &value.Undefined{Hint: "access to attribute '" + name + "' of '" + value.TypeName(obj) + "' object is unsafe.",
		Obj: obj, Name: name, Kind: "SecurityError"}
}

// Getattr returns obj.name: the attribute or else the item.
func Getattr(r *value.Run, obj value.Value, name string) (value.Value, error) {
	if d, ok := obj.(*value.Dict); ok && dictMethods[name] == nil && !dictMutators[name] && !dunders[name] {
		if v, ok := d.Get(name); ok {
			return v, nil
		}
		return value.UndefinedOf(obj, name), nil
	}
	v, ok, err := attribute(r, obj, name)
	if ok || err != nil {
		return v, err
	}
	v, err = r.Index(obj, name)
	if value.IsLookup(err) {
		return value.UndefinedOf(obj, name), nil
	}
	return v, err
}

// Getitem returns obj[key]: the item or else, if key is a string, the attribute.
func Getitem(r *value.Run, obj, key value.Value) (value.Value, error) {
	v, err := r.Index(obj, key)
	if !value.IsLookup(err) {
		return v, err
	}
	if name, ok := key.(string); ok {
		v, ok, err := attribute(r, obj, name)
		if ok || err != nil {
			return v, err
		}
	}
	return value.UndefinedOf(obj, key), nil
}

// Binary returns Python's a op b.
func Binary(r *value.Run, op string, a, b value.Value) (value.Value, error) {
	if s, ok := a.(string); ok && op == "%" {
		return format.Percent(r, s, b)
	}
	return r.Binary(op, a, b)
}
