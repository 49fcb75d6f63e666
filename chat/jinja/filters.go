package jinja

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
)

// filters are jinja2's filters, with transformers' tojson.
var filters map[string]*builtin

func init() {
	filters = map[string]*builtin{}
	add := func(name string, fn func(r *run, v []Value) (Value, error), params ...string) {
		filters[name] = &builtin{name: name, fn: func(r *run, a *arguments) (Value, error) {
			v, err := a.bind(name, params...)
			if err != nil {
				return nil, err
			}
			return fn(r, v)
		}}
	}
	onText := func(name string, fn func(string) string) {
		add(name, func(r *run, v []Value) (Value, error) {
			s, err := r.str(v[0])
			if err != nil {
				return nil, err
			}
			return fn(s), r.alloc(len(s))
		}, "s")
	}
	onText("upper", upper)
	onText("lower", lower)
	onText("capitalize", capitalize)
	add("title", filterTitle, "s")
	add("abs", filterAbs, "/x")
	add("attr", filterAttr, "obj", "name")
	add("center", filterCenter, "value", "width?")
	for _, n := range []string{"default", "d"} {
		add(n, filterDefault, "value", "default_value?", "boolean?")
	}
	add("filesizeformat", filterFileSize, "value", "binary?")
	add("float", filterFloat, "value", "default?")
	add("int", filterInt, "value", "default?", "base?")
	filters["format"] = &builtin{name: "format", fn: filterFormat}
	add("indent", filterIndent, "s", "width?", "first?", "blank?")
	for _, n := range []string{"length", "count"} {
		add(n, func(r *run, v []Value) (Value, error) { n, err := r.length(v[0]); return n, err }, "/obj")
	}
	add("pprint", func(r *run, v []Value) (Value, error) { s, err := r.pprint(v[0]); return s, err }, "value")
	add("random", filterRandom, "seq")
	add("replace", filterReplace, "s", "old", "new", "count?")
	add("round", filterRound, "value", "precision?", "method?")
	for name, param := range map[string]string{"string": "/s", "safe": "value"} {
		add(name, func(r *run, v []Value) (Value, error) { s, err := r.str(v[0]); return s, err }, param)
	}
	add("trim", filterTrim, "value", "chars?")
	add("truncate", filterTruncate, "s", "length?", "killwords?", "end?", "leeway?")
	add("urlencode", filterURLEncode, "value")
	add("wordcount", filterWordCount, "s")
	add("wordwrap", filterWordWrap, "s", "width?", "break_long_words?", "wrapstring?", "break_on_hyphens?")
	add("tojson", filterToJSON, "x", "ensure_ascii?", "indent?", "separators?", "sort_keys?")
	addSequenceFilters(add)
	// Their results are HTML. No chat template needs them.
	for _, n := range []string{"e", "escape", "forceescape", "striptags", "urlize", "xmlattr"} {
		filters[n] = unsupportedFeature("filter", n)
	}
}

// unsupportedFeature stands for a filter, test or function of jinja2 that this package leaves out. It fails when it is
// called.
func unsupportedFeature(what, name string) *builtin {
	return &builtin{name: name, fn: func(*run, *arguments) (Value, error) {
		return nil, raise("TemplateRuntimeError", "the %s '%s' is not supported in chat templates", what, name)
	}}
}

func optional(v, def Value) Value {
	if v == missing {
		return def
	}
	return v
}

// filterTitle capitalizes words. A word begins after white space, a hyphen or an opening bracket.
func filterTitle(r *run, v []Value) (Value, error) {
	s, err := r.str(v[0])
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
		start = isSpace(c) || strings.ContainsRune("-({[<", c)
		if start {
			flush()
			b.WriteRune(c)
		} else {
			word.WriteRune(c)
		}
	}
	flush()
	return b.String(), r.alloc(b.Len())
}

func filterAbs(r *run, v []Value) (Value, error) {
	if f, ok := v[0].(float64); ok {
		return math.Abs(f), nil
	}
	i, ok := integer(v[0])
	if !ok {
		return nil, typeError("bad operand type for abs(): '%s'", typeName(v[0]))
	}
	return normInt(new(big.Int).Abs(i)), nil
}

func filterAttr(r *run, v []Value) (Value, error) {
	name, ok := v[1].(string)
	if !ok {
		return nil, typeError("attribute name must be string, not '%s'", typeName(v[1]))
	}
	x, ok, err := attribute(r, v[0], name)
	if ok || err != nil {
		return x, err
	}
	return undefinedOf(v[0], name), nil
}

func filterCenter(r *run, v []Value) (Value, error) {
	s, err := r.str(v[0])
	if err != nil {
		return nil, err
	}
	width, err := needInt(v[1], 80)
	if err != nil {
		return nil, err
	}
	out, err := r.pad(s, width, " ", "center")
	return out, err
}

func filterDefault(r *run, v []Value) (Value, error) {
	_, is := v[0].(*undefined)
	if !is && v[2] != missing && truth(v[2]) {
		yes, err := r.truth(v[0])
		if err != nil {
			return nil, err
		}
		is = !yes
	}
	if is {
		return optional(v[1], ""), nil
	}
	return v[0], nil
}

func filterFileSize(r *run, v []Value) (Value, error) {
	n, err := r.toFloat(v[0])
	if err != nil {
		return nil, err
	}
	base, names := 1000.0, []string{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"}
	if v[1] != missing && truth(v[1]) {
		base, names = 1024, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}
	}
	if n == 1 {
		return "1 Byte", nil
	}
	if n < base {
		i, err := floatToInt(n)
		if err != nil {
			return nil, err
		}
		return i.String() + " Bytes", nil
	}
	unit := base
	for i, name := range names {
		if unit *= base; n < unit || i == len(names)-1 {
			return strconv.FormatFloat(base*n/unit, 'f', 1, 64) + " " + name, nil
		}
	}
	return nil, nil
}

// toFloat returns Python's float(v).
func (r *run) toFloat(v Value) (float64, error) {
	if u, ok := v.(*undefined); ok {
		return 0, u.fail()
	}
	if s, ok := v.(string); ok {
		return parseFloat(s)
	}
	if b, ok := v.(Bytes); ok {
		return parseFloat(string(b))
	}
	f, ok, err := float(v)
	if !ok {
		return 0, typeError("float() argument must be a string or a real number, not '%s'", typeName(v))
	}
	return f, err
}

func parseFloat(s string) (float64, error) {
	t := strings.TrimFunc(asciiDigits(s), isSpace)
	bad := valueError("could not convert string to float: %s", quote(s))
	for i := range len(t) {
		if t[i] == '_' && (i == 0 || i+1 == len(t) || !isDigit(t[i-1]) || !isDigit(t[i+1])) {
			return 0, bad
		}
	}
	t = strings.ReplaceAll(t, "_", "")
	if strings.ContainsAny(t, "xXpP") {
		return 0, bad
	}
	f, err := strconv.ParseFloat(t, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, bad
	}
	return f, nil
}

// asciiDigits replaces decimal digits of other scripts by ASCII digits.
func asciiDigits(s string) string {
	if isASCII(s) {
		return s
	}
	return strings.Map(func(c rune) rune {
		if d := digitValue(c); d >= 0 {
			return rune('0' + d)
		}
		return c
	}, s)
}

func filterFloat(r *run, v []Value) (Value, error) {
	f, err := r.toFloat(v[0])
	if isKind(err, "TypeError", "ValueError") {
		return optional(v[1], 0.0), nil
	}
	return f, err
}

func filterInt(r *run, v []Value) (Value, error) {
	n, err := r.toInt(v[0], optional(v[2], int64(10)))
	if !isKind(err, "TypeError", "ValueError") {
		return n, err
	}
	f, err := r.toFloat(v[0])
	if err == nil {
		var i *big.Int
		if i, err = floatToInt(f); err == nil {
			return normInt(i), nil
		}
	}
	if isKind(err, "TypeError", "ValueError", "OverflowError") {
		return optional(v[1], int64(0)), nil
	}
	return nil, err
}

// toInt returns Python's int(v, base). base only applies to strings.
func (r *run) toInt(v, base Value) (Value, error) {
	switch x := v.(type) {
	case *undefined:
		return nil, x.fail()
	case float64:
		i, err := floatToInt(x)
		if err != nil {
			return nil, err
		}
		return normInt(i), nil
	case string:
		b, err := clampInt(base)
		if err != nil {
			return nil, err
		}
		return parseInt(x, b)
	case Bytes:
		return parseInt(string(x), 10)
	}
	i, ok := integer(v)
	if !ok {
		return nil, typeError("int() argument must be a string, a bytes-like object or a real number, not '%s'", typeName(v))
	}
	return normInt(i), nil
}

func parseInt(s string, base int64) (Value, error) {
	if base != 0 && (base < 2 || base > 36) {
		return nil, valueError("int() base must be >= 2 and <= 36, or 0")
	}
	bad := valueError("invalid literal for int() with base %d: %s", base, quote(s))
	t := strings.TrimFunc(asciiDigits(s), isSpace)
	sign := ""
	if t != "" && (t[0] == '+' || t[0] == '-') {
		sign, t = t[:1], t[1:]
	}
	if len(t) > 1 && t[0] == '0' {
		want := map[byte]int64{'x': 16, 'o': 8, 'b': 2}[t[1]|0x20]
		if want != 0 && (base == want || base == 0) {
			base, t = want, strings.TrimPrefix(t[2:], "_")
			if t == "" {
				return nil, bad
			}
		}
	}
	if base == 0 {
		base = 10
		if len(t) > 1 && t[0] == '0' && strings.Trim(t, "0_") != "" {
			return nil, bad
		}
	}
	if t == "" || t[0] == '_' || t[len(t)-1] == '_' || strings.Contains(t, "__") || t[0] == '+' || t[0] == '-' {
		return nil, bad
	}
	t = strings.ReplaceAll(t, "_", "")
	if len(t) > maxDigits && base&(base-1) != 0 {
		return nil, valueError("Exceeds the limit (%d digits) for integer string conversion", maxDigits)
	}
	i, ok := new(big.Int).SetString(sign+t, int(base))
	if !ok {
		return nil, bad
	}
	return normInt(i), nil
}

func filterFormat(r *run, a *arguments) (Value, error) {
	if len(a.pos) == 0 {
		return nil, typeError("format() missing argument 'value'")
	}
	s, err := r.str(a.pos[0])
	if err != nil {
		return nil, err
	}
	if len(a.pos) > 1 && len(a.names) > 0 {
		return nil, raise("FilterArgumentError", "can't handle positional and keyword arguments at the same time")
	}
	var args Value = tuple(a.pos[1:]...)
	if len(a.names) > 0 {
		kw := NewDict()
		for i, n := range a.names {
			kw.set(n, a.named[i])
		}
		args = kw
	}
	return r.percent(s, args)
}

func filterIndent(r *run, v []Value) (Value, error) {
	indent := ""
	width := optional(v[1], int64(4))
	if s, ok := width.(string); ok {
		indent = s
	} else {
		n, err := clampInt(width)
		if err != nil {
			return nil, err
		}
		if indent, err = r.repeat(" ", max(n, 0)); err != nil {
			return nil, err
		}
	}
	s, ok := v[0].(string)
	if !ok {
		if u, is := v[0].(*undefined); is {
			return nil, u.fail()
		}
		return nil, typeError("indent wants text, not '%s'", typeName(v[0]))
	}
	lines := splitLines(s+"\n", false)
	first := v[2] != missing && truth(v[2])
	blank := v[3] != missing && truth(v[3])
	if err := r.allocTimes(len(indent), int64(len(lines))); err != nil {
		return nil, err
	}
	for i, l := range lines {
		if i > 0 && (blank || l != "") || i == 0 && first {
			lines[i] = indent + l
		}
	}
	out, err := r.join(lines, "\n")
	return out, err
}

func filterRandom(r *run, v []Value) (Value, error) {
	n, err := r.length(v[0])
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return undefinedHint("No random item, sequence was empty."), nil
	}
	return r.index(v[0], rand.Int64N(n))
}

func filterReplace(r *run, v []Value) (Value, error) {
	n := int64(-1)
	if v[3] != missing && v[3] != nil {
		var err error
		if n, err = clampInt(v[3]); err != nil {
			return nil, err
		}
	}
	var parts [3]string
	for i := range parts {
		var err error
		if parts[i], err = r.str(v[i]); err != nil {
			return nil, err
		}
	}
	out, err := r.replace(parts[0], parts[1], parts[2], n)
	return out, err
}

func filterRound(r *run, v []Value) (Value, error) {
	method := optional(v[2], "common")
	name, _ := method.(string)
	precision := optional(v[1], int64(0))
	switch name {
	case "common":
		return r.round(v[0], precision)
	case "ceil", "floor":
	default:
		return nil, raise("FilterArgumentError", "method must be common, ceil or floor")
	}
	scale, err := r.binary("**", int64(10), precision)
	if err != nil {
		return nil, err
	}
	x, err := r.binary("*", v[0], scale)
	if err != nil {
		return nil, err
	}
	if f, ok := x.(float64); ok {
		if f = math.Floor(f); name == "ceil" {
			f = math.Ceil(x.(float64))
		}
		i, err := floatToInt(f)
		if err != nil {
			return nil, err
		}
		x = normInt(i)
	}
	if !isNumber(x) {
		return nil, typeError("must be real number, not %s", typeName(x))
	}
	return r.binary("/", x, scale)
}

// round returns Python's round(v, n): half to even, based on the exact value.
func (r *run) round(v, n Value) (Value, error) {
	if u, ok := v.(*undefined); ok {
		return nil, u.fail()
	}
	if !isNumber(v) {
		return nil, typeError("type %s doesn't define __round__ method", typeName(v))
	}
	if n == nil {
		if f, ok := v.(float64); ok {
			i, err := floatToInt(math.RoundToEven(f))
			if err != nil {
				return nil, err
			}
			return normInt(i), nil
		}
		n = int64(0)
	}
	digits, err := clampInt(n)
	if err != nil {
		return nil, err
	}
	if f, ok := v.(float64); ok {
		switch {
		case math.IsInf(f, 0) || math.IsNaN(f) || digits > 323:
			return f, nil
		case digits < -308:
			return math.Copysign(0, f), nil
		case digits >= 0:
			x, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(digits), 64), 64)
			return x, nil
		}
		exact, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'f', -1, 64))
		exact.SetFloat64(f)
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(-digits), nil)
		q := roundRat(exact.Quo(exact, new(big.Rat).SetInt(scale)))
		x, _ := new(big.Float).SetInt(q.Mul(q, scale)).Float64()
		if math.IsInf(x, 0) {
			return nil, raise("OverflowError", "rounded value too large to represent")
		}
		if x == 0 {
			x = math.Copysign(0, f)
		}
		return x, nil
	}
	i, _ := integer(v)
	if digits >= 0 {
		return normInt(i), nil
	}
	if -digits > int64(i.BitLen()) {
		return int64(0), nil
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(-digits), nil)
	q := roundRat(new(big.Rat).SetFrac(i, scale))
	return normInt(q.Mul(q, scale)), nil
}

// roundRat rounds to an integer, half to even.
func roundRat(x *big.Rat) *big.Int {
	two := big.NewInt(2)
	q, m := new(big.Int).DivMod(x.Num(), x.Denom(), new(big.Int))
	switch m.Mul(m, two).Cmp(x.Denom()) {
	case 1:
		q.Add(q, big.NewInt(1))
	case 0:
		q.Add(q, new(big.Int).And(q, big.NewInt(1)))
	}
	return q
}

func filterTrim(r *run, v []Value) (Value, error) {
	s, err := r.str(v[0])
	if err != nil {
		return nil, err
	}
	out, err := stripText(s, v[1], "strip")
	return out, err
}

func filterTruncate(r *run, v []Value) (Value, error) {
	n, err := needInt(v[1], 255)
	if err != nil {
		return nil, err
	}
	end, err := needText(optional(v[3], "..."), "end")
	if err != nil {
		return nil, err
	}
	leeway := int64(5)
	if v[4] != missing && v[4] != nil {
		if leeway, err = clampInt(v[4]); err != nil {
			return nil, err
		}
	}
	tail := int64(runeCount(end))
	if n < tail {
		return nil, raise("AssertionError", "expected length >= %d, got %d", tail, n)
	}
	if leeway < 0 {
		return nil, raise("AssertionError", "expected leeway >= 0, got %d", leeway)
	}
	size, err := r.length(v[0])
	if err != nil {
		return nil, err
	}
	if size <= n || size-n <= leeway {
		return v[0], nil
	}
	s, ok := v[0].(string)
	if !ok {
		return nil, typeError("can only concatenate %s to %s", typeName(v[0]), typeName(v[0]))
	}
	cut := substring(s, 0, int(n-tail))
	if v[2] == missing || !truth(v[2]) {
		if at := strings.LastIndexByte(cut, ' '); at >= 0 {
			cut = cut[:at]
		}
	}
	return r.add(cut, optional(v[3], "..."))
}

// filterNamed returns the filter with a name, or nil.
func filterNamed(name string) *builtin { return filters[name] }
