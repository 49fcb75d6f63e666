package schema

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/jsontext"
	"github.com/ingotml/ingot/grammar/regex"
)

// text matches the strings of s.
func (c *compiler) text(s *shape, path string) *expr.Expr {
	patterns := s.patterns
	for _, f := range s.formats {
		p, ok := formats[f]
		if !ok {
			if unsupportedFormats[f] {
				c.fail(expr.ErrUnsupported, path, "the format %s", f)
				return expr.None
			}
			continue // not a format of the specification: an annotation
		}
		if len(patterns) > 0 {
			c.fail(expr.ErrUnsupported, path, "the format %s together with a pattern or another format", f)
			return expr.None
		}
		patterns = []string{"^(?:" + p + ")$"}
	}
	most := -1
	if s.maxLength != nil {
		most = *s.maxLength
	}
	if most >= 0 && most < s.minLength {
		return expr.None
	}
	switch {
	case len(patterns) > 1:
		c.fail(expr.ErrUnsupported, path, "more than one pattern for a string")
		return expr.None
	case len(patterns) == 0 && s.minLength == 0 && most < 0:
		return c.json.Text()
	case len(patterns) == 0:
		return jsontext.Quoted(expr.Repeat(jsontext.AnyChar, s.minLength, most))
	}
	pattern := regex.FromECMA(patterns[0])
	if s.minLength > 0 || most >= 0 {
		fitted, ok := fitLength(pattern, s.minLength, most)
		if !ok {
			const format = "minLength or maxLength with the pattern or format %q, which does not imply them"
			c.fail(expr.ErrUnsupported, path, format, patterns[0])
			return expr.None
		}
		pattern = fitted
	}
	return c.shared("pattern "+pattern, path, 50+len(pattern), func() *expr.Expr {
		e, err := regex.Compile(pattern, jsontext.Char, true)
		if err != nil {
			if c.err == nil {
				c.err = wrapAt(path, err)
			}
			return expr.None
		}
		return jsontext.Quoted(e)
	})
}

// fitLength returns a pattern that matches the texts of pattern with least to most characters; most < 0: unbounded. It
// supports patterns that imply the limits, and those that repeat a single character between anchors.
func fitLength(pattern string, least, most int) (string, bool) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return pattern, true // Compile reports the error
	}
	if from, to := lengths(re); anchoredAlone(re) && from >= least && (most < 0 || to >= 0 && to <= most) {
		return pattern, true
	}
	if re.Op != syntax.OpConcat || len(re.Sub) != 3 || re.Sub[0].Op != syntax.OpBeginText ||
		re.Sub[2].Op != syntax.OpEndText {
		return "", false
	}
	body := re.Sub[1]
	for body.Op == syntax.OpCapture {
		body = body.Sub[0]
	}
	from, to := 0, -1
	switch body.Op {
	case syntax.OpStar:
	case syntax.OpPlus:
		from = 1
	case syntax.OpRepeat:
		from, to = body.Min, body.Max
	default:
		return "", false
	}
	if one, other := lengths(body.Sub[0]); one != 1 || other != 1 {
		return "", false
	}
	if to < 0 || most >= 0 && most < to {
		to = most
	}
	if from = max(from, least); to >= 0 && from > to {
		return "", false
	}
	body.Op, body.Min, body.Max = syntax.OpRepeat, from, to
	return re.String(), from <= 1000 && to <= 1000
}

// anchoredAlone reports whether a pattern matches whole texts only.
func anchoredAlone(re *syntax.Regexp) bool {
	return re.Op == syntax.OpConcat && len(re.Sub) > 1 && re.Sub[0].Op == syntax.OpBeginText &&
		re.Sub[len(re.Sub)-1].Op == syntax.OpEndText
}

// lengths returns the fewest and the most characters of a match; most < 0: unbounded.
func lengths(re *syntax.Regexp) (least, most int) {
	const limit = 1 << 30
	add := func(n, from, to int) {
		least = min(least+n*from, limit)
		if most >= 0 && to >= 0 {
			most = min(most+n*to, limit)
		} else {
			most = -1
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune), len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1, 1
	case syntax.OpCapture:
		return lengths(re.Sub[0])
	case syntax.OpStar:
		return 0, -1
	case syntax.OpPlus:
		least, _ = lengths(re.Sub[0])
		return least, -1
	case syntax.OpQuest:
		_, most = lengths(re.Sub[0])
		return 0, most
	case syntax.OpRepeat:
		from, to := lengths(re.Sub[0])
		least = min(re.Min*from, limit)
		if most = -1; re.Max >= 0 && to >= 0 {
			most = min(re.Max*to, limit)
		}
		return least, most
	case syntax.OpConcat:
		for _, s := range re.Sub {
			from, to := lengths(s)
			add(1, from, to)
		}
		return least, most
	case syntax.OpAlternate:
		least, most = lengths(re.Sub[0])
		for _, s := range re.Sub[1:] {
			from, to := lengths(s)
			least = min(least, from)
			if most >= 0 && to >= 0 {
				most = max(most, to)
			} else {
				most = -1
			}
		}
		return least, most
	}
	return 0, 0
}

// formats are the regular formats of draft 2020-12 (section 7.3), as patterns of whole texts. Some allow less than
// their specification: no leap seconds; hosts and addresses in ASCII.
var formats = map[string]string{
	"date":      datePattern,
	"time":      timePattern,
	"date-time": "(?:" + datePattern + ")T" + timePattern,
	"duration": `P(?:[0-9]{1,9}W|(?:[0-9]{1,9}Y(?:[0-9]{1,9}M(?:[0-9]{1,9}D)?)?|[0-9]{1,9}M(?:[0-9]{1,9}D)?|[0-9]{1,9}D)` +
		`(?:T` + durationTime + `)?|T` + durationTime + `)`,
	"email":    `[A-Za-z0-9_+-]{1,20}(?:\.[A-Za-z0-9_+-]{1,14}){0,2}@` + hostPattern,
	"hostname": hostPattern,
	"ipv4":     `(?:` + octet + `\.){3}` + octet,
	"ipv6":     ipv6Pattern,
	"uuid":     `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`,
	"uri": `[A-Za-z][A-Za-z0-9+.-]{0,15}://` + hostPattern + `(?::[0-9]{1,4})?(?:/(?:` + uriChar + `)*)*` +
		`(?:\?(?:` + uriChar + `|[/?])*)?(?:#(?:` + uriChar + `|[/?])*)?`,
	"json-pointer": `(?:/(?:[^~/]|~[01])*)*`,
}

const (
	day28 = `(?:0[1-9]|1[0-9]|2[0-8])`
	// Every valid day: 1 to 28 in all months, 29 and 30 except in February, 31, and leap days.
	datePattern = `[0-9]{4}-(?:(?:0[1-9]|1[0-2])-` + day28 + `|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)|` +
		`(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29`
	timePattern = `(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?` +
		`(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])`
	durationTime = `(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S)`
	label        = `[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?`
	hostPattern  = label + `(?:\.` + label + `){0,6}`
	octet        = `(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
	hextet       = `[0-9a-fA-F]{1,4}`
	uriChar      = `[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2}`
)

// ipv6Pattern matches eight groups, fewer groups around ::, or an IPv4-mapped address (RFC 4291, section 2.2).
var ipv6Pattern = func() string {
	forms := []string{`(?:` + hextet + `:){7}` + hextet, `::ffff:(?:` + octet + `\.){3}` + octet}
	for before := range 8 {
		form := "::"
		if before > 0 {
			form = fmt.Sprintf(`%s(?::%s){%d}::`, hextet, hextet, before-1)
		}
		if after := 7 - before; after > 0 {
			form += fmt.Sprintf(`(?:%s(?::%s){0,%d})?`, hextet, hextet, after-1)
		}
		forms = append(forms, form)
	}
	return strings.Join(forms, "|")
}()

// unsupportedFormats are the formats of the specification that are not regular or not implemented.
var unsupportedFormats = map[string]bool{"idn-email": true, "idn-hostname": true, "iri": true, "iri-reference": true,
	"uri-reference": true,
	"uri-template":  true, "relative-json-pointer": true, "regex": true}

// holdsText reports whether a string satisfies the string constraints of s. It returns false and records an error if a
// pattern does not compile.
func (c *compiler) holdsText(s *shape, text, path string) bool {
	n := utf8.RuneCountInString(text)
	if n < s.minLength || s.maxLength != nil && n > *s.maxLength {
		return false
	}
	for _, p := range s.patterns {
		if !c.matches(regex.FromECMA(p), text, path) {
			return false
		}
	}
	for _, f := range s.formats {
		if p, ok := formats[f]; ok && !c.matches("^(?:"+p+")$", text, path) {
			return false
		}
	}
	return true
}
