package builtin

import (
	"math"
	"strings"

	"github.com/ingotml/ingot/chat/jinja/format"
	"github.com/ingotml/ingot/chat/jinja/value"
)

// filterTitle capitalizes words. A word begins after white space, a hyphen or an opening bracket.
func filterTitle(r *value.Run, v []value.Value) (value.Value, error) {
	s, err := r.Str(v[0])
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	start := true
	word := strings.Builder{}
	flush := func() {
		w := word.String()
		word.Reset()
		for i, c := range w {
			if i > 0 {
				b.WriteString(lower(w[i:]))
				break
			}
			b.WriteString(upper(string(c)))
		}
	}
	for _, c := range s {
		start = value.IsSpace(c) || strings.ContainsRune("-({[<", c)
		if start {
			flush()
			b.WriteRune(c)
		} else {
			word.WriteRune(c)
		}
	}
	flush()
	return b.String(), r.Alloc(b.Len())
}

func filterFormat(r *value.Run, a *value.Arguments) (value.Value, error) {
	if len(a.Pos) == 0 {
		return nil, value.TypeError("format() missing argument 'value'")
	}
	s, err := r.Str(a.Pos[0])
	if err != nil {
		return nil, err
	}
	if len(a.Pos) > 1 && len(a.Names) > 0 {
		return nil, value.Raise("FilterArgumentError", "can't handle positional and keyword arguments at the same time")
	}
	var args value.Value = value.NewTuple(a.Pos[1:]...)
	if len(a.Names) > 0 {
		kw := value.NewDict()
		for i, n := range a.Names {
			kw.Put(n, a.Named[i])
		}
		args = kw
	}
	return format.Percent(r, s, args)
}

func filterIndent(r *value.Run, v []value.Value) (value.Value, error) {
	indent := ""
	width := value.Optional(v[1], int64(4))
	if s, ok := width.(string); ok {
		indent = s
	} else {
		n, err := value.ClampInt(width)
		if err != nil {
			return nil, err
		}
		if indent, err = r.Repeat(" ", max(n, 0)); err != nil {
			return nil, err
		}
	}
	s, ok := v[0].(string)
	if !ok {
		if u, is := v[0].(*value.Undefined); is {
			return nil, u.Fail()
		}
		return nil, value.TypeError("indent wants text, not '%s'", value.TypeName(v[0]))
	}
	lines := splitLines(s+"\n", false, math.MaxInt64)
	first := v[2] != value.Missing && value.Truth(v[2])
	blank := v[3] != value.Missing && value.Truth(v[3])
	if err := r.AllocTimes(len(indent), int64(len(lines))); err != nil {
		return nil, err
	}
	for i, l := range lines {
		if i > 0 && (blank || l != "") || i == 0 && first {
			lines[i] = indent + l
		}
	}
	out, err := r.Join(lines, "\n")
	return out, err
}

func filterReplace(r *value.Run, v []value.Value) (value.Value, error) {
	n := int64(-1)
	if v[3] != value.Missing && v[3] != nil {
		var err error
		if n, err = value.ClampInt(v[3]); err != nil {
			return nil, err
		}
	}
	var parts [3]string
	for i := range parts {
		var err error
		if parts[i], err = r.Str(v[i]); err != nil {
			return nil, err
		}
	}
	out, err := replace(r, parts[0], parts[1], parts[2], n)
	return out, err
}

func filterTrim(r *value.Run, v []value.Value) (value.Value, error) {
	s, err := r.Str(v[0])
	if err != nil {
		return nil, err
	}
	out, err := stripText(s, v[1], "strip")
	return out, err
}

func filterTruncate(r *value.Run, v []value.Value) (value.Value, error) {
	n, err := value.NeedInt(v[1], 255)
	if err != nil {
		return nil, err
	}
	end, err := value.NeedText(value.Optional(v[3], "..."), "end")
	if err != nil {
		return nil, err
	}
	leeway := int64(5)
	if v[4] != value.Missing && v[4] != nil {
		if leeway, err = value.ClampInt(v[4]); err != nil {
			return nil, err
		}
	}
	tail := int64(value.RuneCount(end))
	if n < tail {
		return nil, value.Raise("AssertionError", "expected length >= %d, got %d", tail, n)
	}
	if leeway < 0 {
		return nil, value.Raise("AssertionError", "expected leeway >= 0, got %d", leeway)
	}
	size, err := r.Length(v[0])
	if err != nil {
		return nil, err
	}
	if size <= n || size-n <= leeway {
		return v[0], nil
	}
	s, ok := v[0].(string)
	if !ok {
		return nil, value.TypeError("can only concatenate %s to %s", value.TypeName(v[0]), value.TypeName(v[0]))
	}
	cut := value.Substring(s, 0, int(n-tail))
	if v[2] == value.Missing || !value.Truth(v[2]) {
		if at := strings.LastIndexByte(cut, ' '); at >= 0 {
			cut = cut[:at]
		}
	}
	return r.Add(cut, value.Optional(v[3], "..."))
}
