package builtin

import (
	"math"

	"github.com/ingotml/ingot/chat/jinja/value"
)

// Non-mutating methods of types other than str.
var (
	tupleMethods, listMethods, dictMethods map[string]method
)

func init() {
	tupleMethods = map[string]method{"count": seqCount, "index": seqIndex}
	listMethods = map[string]method{"count": seqCount, "index": seqIndex, "copy": listCopy}
	dictMethods = map[string]method{
		"get": dictGet, "copy": dictCopy,
		"keys": view("keys"), "values": view("values"), "items": view("items"),
	}
}

func seqCount(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
	v, err := a.Bind("count", "/value")
	if err != nil {
		return nil, err
	}
	items, err := r.Collect(self)
	if err != nil {
		return nil, err
	}
	n := int64(0)
	for _, x := range items {
		if err := r.Tick(); err != nil {
			return nil, err
		}
		eq, err := r.Equal(x, v[0])
		if err != nil {
			return nil, err
		}
		if eq {
			n++
		}
	}
	return n, nil
}

func seqIndex(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
	params := []string{"/value", "/start?", "/stop?"}
	if _, ok := self.(*value.Range); ok {
		params = params[:1]
	}
	v, err := a.Bind("index", params...)
	if err != nil {
		return nil, err
	}
	items, err := r.Collect(self)
	if err != nil {
		return nil, err
	}
	from, to := int64(0), int64(len(items))
	if len(v) > 1 {
		if from, err = value.NeedInt(v[1], 0); err != nil {
			return nil, err
		}
		if to, err = value.NeedInt(v[2], math.MaxInt64); err != nil {
			return nil, err
		}
	}
	n := int64(len(items))
	if from < 0 {
		from = max(from+n, 0)
	}
	if to < 0 {
		to += n
	}
	for i := from; i < min(to, n); i++ {
		if err := r.Tick(); err != nil {
			return nil, err
		}
		eq, err := r.Equal(items[i], v[0])
		if err != nil {
			return nil, err
		}
		if eq {
			return i, nil
		}
	}
	return nil, value.ValueError("value is not in %s", value.TypeName(self))
}

func listCopy(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
	if _, err := a.Bind("copy"); err != nil {
		return nil, err
	}
	items, err := r.Concat(self.(*value.List).Items, nil)
	return &value.List{Items: items}, err
}

func dictGet(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
	v, err := a.Bind("get", "/key", "/default?")
	if err != nil {
		return nil, err
	}
	x, ok, err := self.(*value.Dict).Lookup(v[0])
	if ok || err != nil {
		return x, err
	}
	if v[1] == value.Missing {
		return nil, nil
	}
	return v[1], nil
}

func dictCopy(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
	if _, err := a.Bind("copy"); err != nil {
		return nil, err
	}
	d := self.(*value.Dict)
	return d.Clone(), r.Alloc(2 * d.Len() * value.Overhead)
}

func view(kind string) method {
	return func(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
		_, err := a.Bind(kind)
		return &value.DictView{Dict: self.(*value.Dict), Kind: kind}, err
	}
}
