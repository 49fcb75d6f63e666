package jinja

import "strings"

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
type method func(r *run, self Value, a *arguments) (Value, error)

func bound(name string, self Value, m method) *builtin {
	return &builtin{name: name, fn: func(r *run, a *arguments) (Value, error) { return m(r, self, a) }}
}

// attribute returns Python's getattr(obj, name) in the sandbox. ok is false for an AttributeError.
func attribute(r *run, obj Value, name string) (v Value, ok bool, err error) {
	if dunders[name] {
		return unsafe(obj, name), true, nil
	}
	var methods map[string]method
	switch o := obj.(type) {
	case string:
		methods = strMethods
	case Bytes:
		methods = bytesMethods
	case *List:
		if listMutators[name] {
			return unsafe(obj, name), true, nil
		}
		methods = listMethods
	case *Tuple:
		if o.group && name == "grouper" {
			return o.Items[0], true, nil
		}
		if o.group && name == "list" {
			return o.Items[1], true, nil
		}
		methods = tupleMethods
	case *Dict:
		if dictMutators[name] {
			return unsafe(obj, name), true, nil
		}
		methods = dictMethods
	case *namespace:
		v, ok := o.attrs.Get(name)
		return v, ok, nil
	case object:
		return o.attr(r, name)
	case *undefined:
		if strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") {
			return nil, false, nil
		}
		return nil, false, o.fail()
	case *Range:
		switch name {
		case "start":
			return o.start, true, nil
		case "stop":
			return o.stop, true, nil
		case "step":
			return o.step, true, nil
		}
		methods = tupleMethods
	case *dictView:
		switch name {
		case "mapping":
			return o.d, true, nil
		case "isdisjoint":
			if o.kind != "values" {
				return bound(name, o, isDisjoint), true, nil
			}
		}
	case bool, int64, float64:
		return numberAttr(obj, name)
	default:
		if isNumber(obj) {
			return numberAttr(obj, name)
		}
	}
	if m, ok := methods[name]; ok {
		return bound(name, obj, m), true, nil
	}
	return nil, false, nil
}

func unsafe(obj Value, name string) *undefined {
	return &undefined{hint: "access to attribute '" + name + "' of '" + typeName(obj) + "' object is unsafe.",
		obj: obj, name: name, kind: "SecurityError"}
}

// getattr returns obj.name: the attribute or else the item.
func getattr(r *run, obj Value, name string) (Value, error) {
	if d, ok := obj.(*Dict); ok && dictMethods[name] == nil && !dictMutators[name] && !dunders[name] {
		if v, ok := d.Get(name); ok {
			return v, nil
		}
		return undefinedOf(obj, name), nil
	}
	v, ok, err := attribute(r, obj, name)
	if ok || err != nil {
		return v, err
	}
	v, err = r.index(obj, name)
	if isLookup(err) {
		return undefinedOf(obj, name), nil
	}
	return v, err
}

// getitem returns obj[key]: the item or else, if key is a string, the attribute.
func getitem(r *run, obj, key Value) (Value, error) {
	v, err := r.index(obj, key)
	if !isLookup(err) {
		return v, err
	}
	if name, ok := key.(string); ok {
		v, ok, err := attribute(r, obj, name)
		if ok || err != nil {
			return v, err
		}
	}
	return undefinedOf(obj, key), nil
}

// binaryOp returns Python's a op b.
func binaryOp(r *run, op string, a, b Value) (Value, error) {
	if s, ok := a.(string); ok && op == "%" {
		return r.percent(s, b)
	}
	return r.binary(op, a, b)
}
