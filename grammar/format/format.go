// Package format has the strings of JSON Schema's formats (2020-12, Validation, section 7.3) as automata.
//
// Contract: an automaton is made once and shared. It accepts no text that its format does not have; Exact tells those
// that accept all.
package format

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ingotml/ingot/grammar/dfa"
	"github.com/ingotml/ingot/grammar/ecma"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/jsontext"
)

// Known reports whether a format is one of the specification. Others are annotations.
func Known(name string) bool { return formats[name] != "" }

// Texts returns the texts of a known format.
func Texts(name string) (*dfa.DFA, error) { return texts.Get(name) }

var texts = dfa.NewCache(func(name string) (*dfa.DFA, error) { return ecma.Whole(formats[name]) })

var exprs sync.Map // by name: *expr.Expr

// Expr matches the strings of a format. All schemas share it.
func Expr(name string) (*expr.Expr, error) {
	if e, ok := exprs.Load(name); ok {
		return e.(*expr.Expr), nil
	}
	d, err := texts.Get(name)
	if err != nil {
		return expr.None, err
	}
	e := jsontext.Quoted(d.Expr())
	exprs.Store(name, e)
	return e, nil
}

// Exact reports whether the automaton accepts exactly the texts of the format.
func Exact(name string) bool {
	return slices.Contains([]string{"date", "ipv4", "uuid", "json-pointer", "relative-json-pointer"}, name)
}

// formats are patterns of whole texts. Some allow less than their specification: no leap seconds; hosts and addresses
// in ASCII; no labels with -- in the third place, which only punycode has; local parts of e-mail addresses without
// quotes.
var formats = map[string]string{
	"date":      datePattern,
	"time":      timePattern,
	"date-time": "(?:" + datePattern + ")T" + timePattern,
	"duration": `P(?:[0-9]{1,9}W|(?:[0-9]{1,9}Y(?:[0-9]{1,9}M(?:[0-9]{1,9}D)?)?|[0-9]{1,9}M(?:[0-9]{1,9}D)?|[0-9]{1,9}D)` +
		`(?:T` + durationTime + `)?|T` + durationTime + `)`,
	"email":                 `(?=[^@]{1,64}@)` + atom + `(?:\.` + atom + `)*@` + hostPattern,
	"idn-email":             `(?=[^@]{1,64}@)` + atom + `(?:\.` + atom + `)*@` + hostPattern,
	"hostname":              hostPattern,
	"idn-hostname":          hostPattern,
	"ipv4":                  `(?:` + octet + `\.){3}` + octet,
	"ipv6":                  ipv6Pattern,
	"uuid":                  `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`,
	"uri":                   uriPattern(pchar, true),
	"uri-reference":         uriPattern(pchar, false),
	"iri":                   uriPattern(ipchar, true),
	"iri-reference":         uriPattern(ipchar, false),
	"uri-template":          `(?:` + pchar + `|[/?#]|\{[+#./;?&]?` + templateName + `(?:,` + templateName + `)*\})*`,
	"json-pointer":          pointerPattern,
	"relative-json-pointer": `(?:0|[1-9][0-9]*)(?:#|` + pointerPattern + `)`,
	"regex": `(?:(?:[^\\^$.*+?()[\]{}|/\u0000-\u001f\u007f-\uffff]|\.|\\[dDwWsStnrfv.*+?^$(){}|/\\[\]-]|` +
		`\[\^?(?:[A-Za-z0-9_ ]|\\[dwsDWS]|a-z|A-Z|0-9)+\])[*+?]?|[|^$])*`,
}

const (
	day28 = `(?:0[1-9]|1[0-9]|2[0-8])`
	// datePattern matches every valid day: 1 to 28 in all months, 29 and 30 except in February, 31, and leap days.
	datePattern = `[0-9]{4}-(?:(?:0[1-9]|1[0-2])-` + day28 + `|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)|` +
		`(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29`
	timePattern = `(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?` +
		`(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])`
	durationTime   = `(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S)`
	octet          = `(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
	hextet         = `[0-9a-fA-F]{1,4}`
	pointerPattern = `(?:/(?:[^~/]|~[01])*)*`
	// atom is a part of a Dot-string of RFC 5321, section 4.1.2.
	atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
	// templateName is a varspec of RFC 6570, section 2.3.
	templateName = `[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*(?:\*|:[1-9][0-9]{0,3})?`
	escapedByte  = `%[0-9A-Fa-f]{2}`
	// pathChar is pchar of RFC 3986, section 3.3, without the escape of a byte.
	pathChar = `A-Za-z0-9._~!$&'()*+,;=:@-`
	pchar    = `(?:[` + pathChar + `]|` + escapedByte + `)`
	ipchar   = `(?:[` + pathChar + `\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef]|` + escapedByte + `)`
)

// hostPattern is labels of at most 63 characters (RFC 1123, section 2.1), up to three of any length or eight shorter
// ones, so that the whole has at most 253.
var hostPattern = func() string {
	one := func(most int) string {
		return fmt.Sprintf(`(?:[A-Za-z0-9]|[A-Za-z0-9]{2}|[A-Za-z0-9][A-Za-z0-9-][A-Za-z0-9]|`+
			`[A-Za-z0-9][A-Za-z0-9-](?:[A-Za-z0-9][A-Za-z0-9]|-[A-Za-z0-9]|`+
			`(?:[A-Za-z0-9][A-Za-z0-9-]|-[A-Za-z0-9])[A-Za-z0-9-]{0,%d}[A-Za-z0-9]))`, most-5)
	}
	return `(?:` + one(63) + `(?:\.` + one(63) + `){0,2}|` + one(30) + `(?:\.` + one(30) + `){0,7})`
}()

// uriPattern matches URIs (RFC 3986, section 3) of the given path characters, with a port of at most five digits;
// absolute: with a scheme.
func uriPattern(char string, absolute bool) string {
	const (
		name = `[A-Za-z0-9._~-]`
		user = `(?:[A-Za-z0-9._~!$&'()*+,;=:-]|` + escapedByte + `)*@`
	)
	authority := `//(?:` + user + `)?(?:` + name + `+|\[` + ipv6Pattern + `\])(?::[0-9]{1,5})?`
	tail := `(?:\?(?:` + char + `|[/?])*)?(?:#(?:` + char + `|[/?])*)?`
	segments := `(?:/` + char + `*)*`
	rooted := `/(?:` + char + `+` + segments + `)?`
	local := `///` + char + `+` + segments // an empty host: file:///path
	whole := `[A-Za-z][A-Za-z0-9+.-]*:(?:` + authority + segments + `|` + local + `|` + rooted + `|` + char + `+` +
		segments + `)` + tail
	if absolute {
		return whole
	}
	first := strings.Replace(char, ":@", "@", 1) // the first segment has no colon
	return whole + `|(?:` + authority + segments + `|` + rooted + `|` + first + `+` + segments + `|)` + tail
}

// ipv6Pattern matches eight groups, or fewer around ::, the last two also as an IPv4 address (RFC 4291, section 2.2).
var ipv6Pattern = func() string {
	four := `(?:` + octet + `\.){3}` + octet
	last := `(?:` + hextet + `:` + hextet + `|` + four + `)`
	forms := []string{`(?:` + hextet + `:){6}` + last}
	for before := range 8 {
		form := "::"
		if before > 0 {
			form = fmt.Sprintf(`%s(?::%s){%d}::`, hextet, hextet, before-1)
		}
		if after := 7 - before; after > 0 {
			tail := fmt.Sprintf(`%s(?::%s){0,%d}`, hextet, hextet, after-1)
			if after >= 2 {
				tail += fmt.Sprintf(`|(?:%s:){0,%d}%s`, hextet, after-2, four)
			}
			form += `(?:` + tail + `)?`
		}
		forms = append(forms, form)
	}
	return `(?:` + strings.Join(forms, "|") + `)`
}()
