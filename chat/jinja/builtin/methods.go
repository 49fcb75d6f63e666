package builtin

import (
	"encoding/hex"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/chat/jinja/value"
)

// Non-mutating methods of types other than str.
var (
	tupleMethods, listMethods, dictMethods, bytesMethods map[string]method
)

func init() {
	tupleMethods = map[string]method{"count": seqCount, "index": seqIndex}
	listMethods = map[string]method{"count": seqCount, "index": seqIndex, "copy": listCopy}
	dictMethods = map[string]method{
		"get": dictGet, "copy": dictCopy, "fromkeys": dictFromKeys,
		"keys": view("keys"), "values": view("values"), "items": view("items"),
	}
	bytesMethods = map[string]method{"decode": bytesDecode, "hex": bytesHex}
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

func dictFromKeys(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
	v, err := a.Bind("fromkeys", "/iterable", "/value?")
	if err != nil {
		return nil, err
	}
	items, err := r.Collect(v[0])
	if err != nil {
		return nil, err
	}
	if v[1] == value.Missing {
		v[1] = nil
	}
	d := value.NewDict()
	for _, k := range items {
		if err := d.Set(k, v[1]); err != nil {
			return nil, err
		}
	}
	return d, r.Alloc(2 * d.Len() * value.Overhead)
}

func view(kind string) method {
	return func(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
		_, err := a.Bind(kind)
		return &value.DictView{Dict: self.(*value.Dict), Kind: kind}, err
	}
}

func isDisjoint(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
	v, err := a.Bind("isdisjoint", "/other")
	if err != nil {
		return nil, err
	}
	items, err := r.Collect(v[0])
	if err != nil {
		return nil, err
	}
	for _, x := range items {
		if in, err := r.Contains(self, x); in || err != nil {
			return !in, err
		}
	}
	return true, nil
}

func bytesDecode(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
	v, err := a.Bind("decode", "encoding?", "errors?")
	if err != nil {
		return nil, err
	}
	s := string(self.(value.Bytes))
	if v[0] != value.Missing {
		name, err := value.NeedText(v[0], "decode() argument 'encoding'")
		if err != nil {
			return nil, err
		}
		switch strings.ToLower(name) {
		case "latin-1", "latin1", "iso-8859-1":
			var b strings.Builder
			for i := 0; i < len(s); i++ {
				b.WriteRune(rune(s[i]))
			}
			return b.String(), r.Alloc(b.Len())
		case "utf-8", "utf8", "ascii":
		default:
			return nil, value.Raise("LookupError", "unknown encoding: %s", name)
		}
	}
	if !utf8.ValidString(s) {
		return nil, value.Raise("UnicodeDecodeError", "bytes are not UTF-8")
	}
	return s, nil
}

func bytesHex(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
	if _, err := a.Bind("hex"); err != nil {
		return nil, err
	}
	return hex.EncodeToString([]byte(self.(value.Bytes))), nil
}
