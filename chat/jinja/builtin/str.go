package builtin

import (
	"strings"
	"unicode"

	"github.com/ingotml/ingot/chat/jinja/format"
	"github.com/ingotml/ingot/chat/jinja/value"
)

// strMethods are the methods of str.
var strMethods map[string]method

func init() {
	plain := func(name string, fn func(string) value.Value) {
		strMethods[name] = func(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
			if _, err := a.Bind(name); err != nil {
				return nil, err
			}
			s, _ := self.(string)
			if err := r.Alloc(len(s)); err != nil {
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
		"format":       formatMethod,
	}
	for name, fn := range map[string]func(string) string{
		"upper": upper, "lower": lower, "casefold": casefold, "capitalize": capitalize, "title": title,
	} {
		plain(name, func(s string) value.Value { return fn(s) })
	}
	for name, fn := range map[string]func(string) bool{
		"isalnum":   func(s string) bool { return all(s, isAlnum) },
		"isalpha":   func(s string) bool { return all(s, unicode.IsLetter) },
		"isascii":   value.IsASCII,
		"isdecimal": func(s string) bool { return all(s, unicode.IsDigit) },
		"isdigit":   func(s string) bool { return all(s, isDigitRune) },
		"isnumeric": func(s string) bool { return all(s, isNumeric) },
		"isspace":   func(s string) bool { return all(s, value.IsSpace) },
		"islower":   func(s string) bool { return cased(s, isLower) },
		"isupper":   func(s string) bool { return cased(s, isUpper) },
	} {
		plain(name, func(s string) value.Value { return fn(s) })
	}
}

func justify(name string) method {
	return func(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
		v, err := a.Bind(name, "/width", "/fillchar?")
		if err != nil {
			return nil, err
		}
		width, err := value.ClampInt(v[0])
		if err != nil {
			return nil, err
		}
		fill := " "
		if v[1] != value.Missing {
			if fill, err = value.NeedText(v[1], "the fill character"); err != nil {
				return nil, err
			}
			if value.RuneCount(fill) != 1 {
				return nil, value.TypeError("The fill character must be exactly one character long")
			}
		}
		s, _ := self.(string)
		out, err := format.Pad(r, s, width, fill, name)
		return out, err
	}
}

func zfill(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
	v, err := a.Bind("zfill", "/width")
	if err != nil {
		return nil, err
	}
	width, err := value.ClampInt(v[0])
	if err != nil {
		return nil, err
	}
	s, _ := self.(string)
	sign := ""
	if s != "" && (s[0] == '+' || s[0] == '-') {
		sign, s = s[:1], s[1:]
	}
	out, err := format.Pad(r, s, max(width, 0)-int64(len(sign)), "0", "rjust")
	return sign + out, err
}

func strip(name string) method {
	return func(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
		v, err := a.Bind(name, "/chars?")
		if err != nil {
			return nil, err
		}
		s, _ := self.(string)
		out, err := stripText(s, v[0], name)
		return out, err
	}
}

func stripText(s string, chars value.Value, how string) (string, error) {
	cut := value.IsSpace
	if chars != value.Missing && chars != nil {
		set, ok := chars.(string)
		if !ok {
			return "", value.TypeError("strip arg must be None or str")
		}
		members := make(map[rune]bool)
		for _, c := range set {
			members[c] = true
		}
		cut = func(c rune) bool { return members[c] }
	}
	switch how {
	case "lstrip":
		return strings.TrimLeftFunc(s, cut), nil
	case "rstrip":
		return strings.TrimRightFunc(s, cut), nil
	}
	return strings.TrimFunc(s, cut), nil
}

// formatMethod is str.format.
func formatMethod(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
	kw := value.NewDict()
	for i, n := range a.Names {
		kw.Put(n, a.Named[i])
	}
	return strFormat(r, self, a.Pos, kw)
}

func strFormat(r *value.Run, self value.Value, pos []value.Value, named value.Value) (value.Value, error) {
	s, _ := self.(string)
	out, err := format.Fields(r, s, pos, named, format.Lookup{Attr: Getattr, Item: Getitem})
	return out, err
}
