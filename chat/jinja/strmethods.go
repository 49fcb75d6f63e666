package jinja

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// strMethods are the methods of str.
var strMethods map[string]method

func init() {
	plain := func(name string, fn func(string) Value) {
		strMethods[name] = func(r *run, self Value, a *arguments) (Value, error) {
			if _, err := a.bind(name); err != nil {
				return nil, err
			}
			s, _ := self.(string)
			if err := r.alloc(len(s)); err != nil {
				return nil, err
			}
			return fn(s), nil
		}
	}
	strMethods = map[string]method{
		"center":       justify("center"),
		"ljust":        justify("ljust"),
		"rjust":        justify("rjust"),
		"zfill":        zfill,
		"strip":        strip("strip"),
		"lstrip":       strip("lstrip"),
		"rstrip":       strip("rstrip"),
		"split":        split("split"),
		"rsplit":       split("rsplit"),
		"splitlines":   splitLinesMethod,
		"partition":    partition("partition"),
		"rpartition":   partition("rpartition"),
		"startswith":   affix("startswith"),
		"endswith":     affix("endswith"),
		"find":         find("find"),
		"rfind":        find("rfind"),
		"index":        find("index"),
		"rindex":       find("rindex"),
		"count":        countMethod,
		"replace":      replaceMethod,
		"removeprefix": remove("removeprefix"),
		"removesuffix": remove("removesuffix"),
		"join":         joinMethod,
		"encode":       encode,
		"expandtabs":   expandTabsMethod,
		"format":       formatMethod,
		"format_map":   formatMapMethod,
		"translate":    translate,
		"maketrans":    maketrans,
	}
	for name, fn := range map[string]func(string) string{
		"upper": upper, "lower": lower, "casefold": casefold, "capitalize": capitalize, "title": title, "swapcase": swapcase,
	} {
		plain(name, func(s string) Value { return fn(s) })
	}
	for name, fn := range map[string]func(string) bool{
		"isalnum":      func(s string) bool { return all(s, isAlnum) },
		"isalpha":      func(s string) bool { return all(s, unicode.IsLetter) },
		"isascii":      isASCII,
		"isdecimal":    func(s string) bool { return all(s, unicode.IsDigit) },
		"isdigit":      func(s string) bool { return all(s, isDigitRune) },
		"isnumeric":    func(s string) bool { return all(s, isNumeric) },
		"isspace":      func(s string) bool { return all(s, isSpace) },
		"islower":      func(s string) bool { return cased(s, isLower) },
		"isupper":      func(s string) bool { return cased(s, isUpper) },
		"istitle":      isTitle,
		"isidentifier": isIdentifier,
		"isprintable":  isPrintable,
	} {
		plain(name, func(s string) Value { return fn(s) })
	}
}

// needText returns an argument that must be a string.
func needText(v Value, what string) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", typeError("%s must be str, not %s", what, typeName(v))
	}
	return s, nil
}

func needInt(v Value, def int64) (int64, error) {
	if v == missing {
		return def, nil
	}
	return clampInt(v)
}

func (r *run) texts(parts []string) (Value, error) {
	items := make([]Value, len(parts))
	n := valueSize * len(parts)
	for i, p := range parts {
		items[i] = p
		n += len(p)
	}
	return &List{items}, r.alloc(n)
}

func justify(name string) method {
	return func(r *run, self Value, a *arguments) (Value, error) {
		v, err := a.bind(name, "/width", "/fillchar?")
		if err != nil {
			return nil, err
		}
		width, err := clampInt(v[0])
		if err != nil {
			return nil, err
		}
		fill := " "
		if v[1] != missing {
			if fill, err = needText(v[1], "the fill character"); err != nil {
				return nil, err
			}
			if runeCount(fill) != 1 {
				return nil, typeError("The fill character must be exactly one character long")
			}
		}
		s, _ := self.(string)
		out, err := r.pad(s, width, fill, name)
		return out, err
	}
}

// pad pads s to a width.
func (r *run) pad(s string, width int64, fill, how string) (string, error) {
	n := width - int64(runeCount(s))
	if n <= 0 {
		return s, nil
	}
	left, right := int64(0), n
	switch how {
	case "rjust":
		left, right = n, 0
	case "center":
		left = n/2 + n&width&1
		right = n - left
	}
	l, err := r.repeat(fill, left)
	if err != nil {
		return "", err
	}
	rr, err := r.repeat(fill, right)
	if err != nil {
		return "", err
	}
	return r.join([]string{l, s, rr}, "")
}

func zfill(r *run, self Value, a *arguments) (Value, error) {
	v, err := a.bind("zfill", "/width")
	if err != nil {
		return nil, err
	}
	width, err := clampInt(v[0])
	if err != nil {
		return nil, err
	}
	s, _ := self.(string)
	sign := ""
	if s != "" && (s[0] == '+' || s[0] == '-') {
		sign, s = s[:1], s[1:]
	}
	out, err := r.pad(s, max(width, 0)-int64(len(sign)), "0", "rjust")
	return sign + out, err
}

func strip(name string) method {
	return func(r *run, self Value, a *arguments) (Value, error) {
		v, err := a.bind(name, "/chars?")
		if err != nil {
			return nil, err
		}
		s, _ := self.(string)
		out, err := stripText(s, v[0], name)
		return out, err
	}
}

func stripText(s string, chars Value, how string) (string, error) {
	cut := isSpace
	if chars != missing && chars != nil {
		set, ok := chars.(string)
		if !ok {
			return "", typeError("strip arg must be None or str")
		}
		cut = func(c rune) bool { return strings.ContainsRune(set, c) }
	}
	switch how {
	case "lstrip":
		return strings.TrimLeftFunc(s, cut), nil
	case "rstrip":
		return strings.TrimRightFunc(s, cut), nil
	}
	return strings.TrimFunc(s, cut), nil
}

func split(name string) method {
	return func(r *run, self Value, a *arguments) (Value, error) {
		v, err := a.bind(name, "sep?", "maxsplit?")
		if err != nil {
			return nil, err
		}
		limit, err := needInt(v[1], -1)
		if err != nil {
			return nil, err
		}
		s, _ := self.(string)
		var parts []string
		if v[0] == missing || v[0] == nil {
			if name == "split" {
				parts = splitSpace(s, limit)
			} else {
				parts = rsplitSpace(s, limit)
			}
		} else {
			sep, err := needText(v[0], "separator")
			if err != nil {
				return nil, err
			}
			switch {
			case sep == "":
				return nil, valueError("empty separator")
			case name == "rsplit":
				parts = rsplit(s, sep, limit)
			case limit < 0 || limit >= math.MaxInt32:
				parts = strings.Split(s, sep)
			default:
				parts = strings.SplitN(s, sep, int(limit)+1)
			}
		}
		list, err := r.texts(parts)
		return list, err
	}
}

func splitLinesMethod(r *run, self Value, a *arguments) (Value, error) {
	v, err := a.bind("splitlines", "keepends?")
	if err != nil {
		return nil, err
	}
	s, _ := self.(string)
	list, err := r.texts(splitLines(s, v[0] != missing && truth(v[0])))
	return list, err
}

func partition(name string) method {
	return func(r *run, self Value, a *arguments) (Value, error) {
		v, err := a.bind(name, "/sep")
		if err != nil {
			return nil, err
		}
		sep, err := needText(v[0], "separator")
		if err != nil {
			return nil, err
		}
		if sep == "" {
			return nil, valueError("empty separator")
		}
		s, _ := self.(string)
		if name == "partition" {
			before, after, found := strings.Cut(s, sep)
			if !found {
				sep = ""
			}
			return tuple(before, sep, after), nil
		}
		at := strings.LastIndex(s, sep)
		if at < 0 {
			return tuple("", "", s), nil
		}
		return tuple(s[:at], sep, s[at+len(sep):]), nil
	}
}

// part cuts s by the optional start and end arguments of find and similar methods. ok is false if start is after the
// end.
func part(s string, from, to Value) (cut string, start int64, ok bool, err error) {
	if (from == missing || from == nil) && (to == missing || to == nil) {
		return s, 0, true, nil
	}
	n := int64(runeCount(s))
	index := func(v Value, def int64) int64 {
		if v == missing || v == nil || err != nil {
			return def
		}
		var i int64
		if i, err = clampInt(v); err != nil {
			err = typeError("slice indices must be integers or None or have an __index__ method")
		}
		if i < 0 {
			i = max(i+n, 0)
		}
		return i
	}
	i := index(from, 0)
	j := min(index(to, n), n)
	if err != nil || i > j {
		return "", i, false, err
	}
	return substring(s, int(i), int(j)), i, true, nil
}

func affix(name string) method {
	return func(r *run, self Value, a *arguments) (Value, error) {
		v, err := a.bind(name, "/affix", "/start?", "/end?")
		if err != nil {
			return nil, err
		}
		s, _ := self.(string)
		s, _, ok, err := part(s, v[1], v[2])
		if err != nil {
			return nil, err
		}
		has := func(x Value) (bool, error) {
			t, isText := x.(string)
			if !isText {
				return false, typeError("%s first arg must be str or a tuple of str, not %s", name, typeName(x))
			}
			if name == "startswith" {
				return ok && strings.HasPrefix(s, t), nil
			}
			return ok && strings.HasSuffix(s, t), nil
		}
		list, isTuple := v[0].(*Tuple)
		if !isTuple {
			return has(v[0])
		}
		for _, x := range list.Items {
			if yes, err := has(x); yes || err != nil {
				return yes, err
			}
		}
		return false, nil
	}
}

func find(name string) method {
	return func(r *run, self Value, a *arguments) (Value, error) {
		v, err := a.bind(name, "/sub", "/start?", "/end?")
		if err != nil {
			return nil, err
		}
		sub, err := needText(v[0], "argument 1")
		if err != nil {
			return nil, err
		}
		s, _ := self.(string)
		r.work(len(s) / 16)
		s, from, ok, err := part(s, v[1], v[2])
		if err != nil {
			return nil, err
		}
		at := -1
		if ok {
			if name[0] == 'r' {
				at = strings.LastIndex(s, sub)
			} else {
				at = strings.Index(s, sub)
			}
		}
		if at < 0 {
			if strings.HasSuffix(name, "index") {
				return nil, valueError("substring not found")
			}
			return int64(-1), nil
		}
		return from + int64(runeCount(s[:at])), nil
	}
}

func countMethod(r *run, self Value, a *arguments) (Value, error) {
	v, err := a.bind("count", "/sub", "/start?", "/end?")
	if err != nil {
		return nil, err
	}
	sub, err := needText(v[0], "argument 1")
	if err != nil {
		return nil, err
	}
	s, _ := self.(string)
	r.work(len(s) / 16)
	s, _, ok, err := part(s, v[1], v[2])
	if !ok || err != nil {
		return int64(0), err
	}
	return int64(strings.Count(s, sub)), nil
}

func replaceMethod(r *run, self Value, a *arguments) (Value, error) {
	v, err := a.bind("replace", "/old", "/new", "/count?")
	if err != nil {
		return nil, err
	}
	old, err := needText(v[0], "replace() argument 1")
	if err != nil {
		return nil, err
	}
	repl, err := needText(v[1], "replace() argument 2")
	if err != nil {
		return nil, err
	}
	n, err := needInt(v[2], -1)
	if err != nil {
		return nil, err
	}
	s, _ := self.(string)
	out, err := r.replace(s, old, repl, n)
	return out, err
}

func (r *run) replace(s, old, repl string, n int64) (string, error) {
	times := int64(strings.Count(s, old))
	if n >= 0 {
		times = min(times, n)
	}
	if err := r.alloc(len(s)); err != nil {
		return "", err
	}
	if err := r.allocTimes(len(repl), times); err != nil {
		return "", err
	}
	return strings.Replace(s, old, repl, int(times)), nil
}

func remove(name string) method {
	return func(r *run, self Value, a *arguments) (Value, error) {
		v, err := a.bind(name, "/affix")
		if err != nil {
			return nil, err
		}
		t, err := needText(v[0], "argument")
		if err != nil {
			return nil, err
		}
		s, _ := self.(string)
		if name == "removeprefix" {
			return strings.TrimPrefix(s, t), nil
		}
		return strings.TrimSuffix(s, t), nil
	}
}

func joinMethod(r *run, self Value, a *arguments) (Value, error) {
	v, err := a.bind("join", "/iterable")
	if err != nil {
		return nil, err
	}
	if err := iterable(v[0]); err != nil {
		return nil, typeError("can only join an iterable")
	}
	items, err := r.collect(v[0])
	if err != nil {
		return nil, err
	}
	sep, _ := self.(string)
	parts := make([]string, len(items))
	for i, x := range items {
		s, ok := x.(string)
		if !ok {
			return nil, typeError("sequence item %d: expected str instance, %s found", i, typeName(x))
		}
		parts[i] = s
	}
	s, err := r.join(parts, sep)
	return s, err
}

func expandTabsMethod(r *run, self Value, a *arguments) (Value, error) {
	v, err := a.bind("expandtabs", "tabsize?")
	if err != nil {
		return nil, err
	}
	size, err := needInt(v[0], 8)
	if err != nil {
		return nil, err
	}
	s, _ := self.(string)
	if err := r.allocTimes(strings.Count(s, "\t"), max(size, 0)); err != nil {
		return nil, err
	}
	return expandTabs(s, size), r.alloc(len(s))
}

// encode is str.encode for UTF-8, ASCII and Latin-1.
func encode(r *run, self Value, a *arguments) (Value, error) {
	v, err := a.bind("encode", "encoding?", "errors?")
	if err != nil {
		return nil, err
	}
	name := "utf-8"
	if v[0] != missing {
		if name, err = needText(v[0], "encode() argument 'encoding'"); err != nil {
			return nil, err
		}
	}
	errs := "strict"
	if v[1] != missing {
		if errs, err = needText(v[1], "encode() argument 'errors'"); err != nil {
			return nil, err
		}
	}
	s, _ := self.(string)
	if err := r.alloc(len(s)); err != nil {
		return nil, err
	}
	limit := rune(0)
	switch strings.ReplaceAll(strings.ToLower(name), "_", "-") {
	case "utf-8", "utf8", "u8":
		return Bytes(s), nil
	case "ascii", "us-ascii", "646":
		limit = 0x80
	case "latin-1", "latin1", "iso-8859-1", "iso8859-1", "8859", "l1", "cp819":
		limit = 0x100
	default:
		return nil, raise("LookupError", "unknown encoding: %s", name)
	}
	var b strings.Builder
	for _, c := range s {
		if c < limit {
			b.WriteByte(byte(c))
			continue
		}
		switch errs {
		case "ignore":
		case "replace":
			b.WriteByte('?')
		case "xmlcharrefreplace":
			fmt.Fprintf(&b, "&#%d;", c)
		case "backslashreplace":
			q := quoteEscape(c)
			b.WriteString(q)
		default:
			return nil, raise("UnicodeEncodeError", "'%s' codec can't encode character %s", name, quoteEscape(c))
		}
	}
	return Bytes(b.String()), nil
}

func quoteEscape(c rune) string {
	switch {
	case c < 0x100:
		return fmt.Sprintf(`\x%02x`, c)
	case c < 0x10000:
		return fmt.Sprintf(`\u%04x`, c)
	}
	return fmt.Sprintf(`\U%08x`, c)
}

func translate(r *run, self Value, a *arguments) (Value, error) {
	v, err := a.bind("translate", "/table")
	if err != nil {
		return nil, err
	}
	s, _ := self.(string)
	var b strings.Builder
	for _, c := range s {
		to, err := r.index(v[0], int64(c))
		if err != nil && !isKind(err, "LookupError", "IndexError", "KeyError") {
			return nil, err
		}
		switch t := to.(type) {
		case nil:
			if err != nil {
				b.WriteRune(c)
			}
		case string:
			b.WriteString(t)
		case int64:
			if t < 0 || t > utf8.MaxRune {
				return nil, valueError("character mapping must be in range(0x110000)")
			}
			b.WriteRune(rune(t))
		default:
			return nil, typeError("character mapping must return integer, None or str")
		}
		if err := r.alloc(utf8.RuneLen(c)); err != nil {
			return nil, err
		}
		if int64(b.Len()) > r.limits.Memory {
			return nil, r.alloc(b.Len())
		}
	}
	return b.String(), r.alloc(b.Len())
}

func maketrans(r *run, self Value, a *arguments) (Value, error) {
	v, err := a.bind("maketrans", "/x", "/y?", "/z?")
	if err != nil {
		return nil, err
	}
	table := NewDict()
	if v[1] == missing {
		d, ok := v[0].(*Dict)
		if !ok {
			return nil, typeError("if you give only one argument to maketrans it must be a dict")
		}
		for i, k := range d.allKeys() {
			if s, ok := k.(string); ok {
				if runeCount(s) != 1 {
					return nil, valueError("string keys in translate table must be of length 1")
				}
				c, _ := utf8.DecodeRuneInString(s)
				k = int64(c)
			} else if _, ok := integer(k); !ok {
				return nil, typeError("keys in translate table must be strings or integers")
			}
			if err := table.Set(k, d.allValues()[i]); err != nil {
				return nil, err
			}
		}
		return table, nil
	}
	x, err := needText(v[0], "maketrans argument 1")
	if err != nil {
		return nil, err
	}
	y, err := needText(v[1], "maketrans argument 2")
	if err != nil {
		return nil, err
	}
	from, to := []rune(x), []rune(y)
	if len(from) != len(to) {
		return nil, valueError("the first two maketrans arguments must have equal length")
	}
	for i, c := range from {
		_ = table.Set(int64(c), int64(to[i]))
	}
	if v[2] != missing {
		z, err := needText(v[2], "maketrans argument 3")
		if err != nil {
			return nil, err
		}
		for _, c := range z {
			_ = table.Set(int64(c), nil)
		}
	}
	return table, nil
}

// formatMethod is str.format.
func formatMethod(r *run, self Value, a *arguments) (Value, error) {
	kw := NewDict()
	for i, n := range a.names {
		kw.set(n, a.named[i])
	}
	return strFormat(r, self, a.pos, kw)
}

// formatMapMethod is str.format_map.
func formatMapMethod(r *run, self Value, a *arguments) (Value, error) {
	v, err := a.bind("format_map", "/mapping")
	if err != nil {
		return nil, err
	}
	return strFormat(r, self, nil, v[0])
}

func strFormat(r *run, self Value, pos []Value, named Value) (Value, error) {
	s, _ := self.(string)
	out, err := r.formatFields(s, pos, named, lookup{attr: getattr, item: getitem})
	return out, err
}
