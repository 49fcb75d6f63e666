package parse

import (
	"strings"
)

// functionTags are the tags of calls as functions: <function=NAME>, <parameter=KEY>VALUE</parameter> for each argument,
// and </function>. open and end are the tags around all of them.
func functionTags(open, end string) *elements {
	return &elements{
		open: open, end: end,
		call: functionOpen, callEnd: functionClose, param: parameterOpen, paramEnd: parameterClose,
		name: unquote,
		arg: func(head, value string) arg {
			return arg{key: unquote(head), value: oneLine(value)}
		},
	}
}

const (
	functionOpen   = "<function="
	functionClose  = "</function>"
	parameterOpen  = "<parameter="
	parameterClose = "</parameter>"
)

// functionForm returns the form of functions between two tags, or without tags if open is functionOpen. Without them,
// the body is that of the first function.
func functionForm(open, end string) form {
	e := functionTags(open, end)
	if open != functionOpen {
		return form{open: open, tag: end, end: func(o offer) ender { return e.scan(o) }, parse: e.parse}
	}
	return form{
		open: open, tag: functionClose, end: func(o offer) ender { return e.scan(o) },
		parse: func(t tools, body string, complete bool) ([]ToolCall, error) {
			if complete {
				body += functionClose
			}
			return e.parse(t, body, complete)
		},
	}
}

// orJSON returns a form whose body may also be JSON.
func orJSON(f form) form {
	other, parse := f.end, f.parse
	f.end = func(o offer) ender { return &eitherEnd{json: jsonTagEnd(f.tag)(o), other: other(o)} }
	f.parse = func(t tools, body string, complete bool) ([]ToolCall, error) {
		if b := firstByte([]byte(body)); b == '{' || b == '[' {
			return parseJSON(t, body, complete)
		}
		return parse(t, body, complete)
	}
	return f
}

// eitherEnd is the ender of orJSON. The first byte decides.
type eitherEnd struct{ json, other ender }

func (e *eitherEnd) of(body []byte) ender {
	if len(body) > 0 && (body[0] == '{' || body[0] == '[') {
		return e.json
	}
	return e.other
}

func (e *eitherEnd) add(body []byte) step { return e.of(body).add(body) }

func (e *eitherEnd) passed(body []byte) (int, int) { return e.of(body).passed(body) }

// oneLine removes a line break at the start and one at the end.
func oneLine(value string) string { return strings.TrimSuffix(strings.TrimPrefix(value, "\n"), "\n") }

// unquote trims white space and the quotes that some models put around a name.
func unquote(s string) string {
	s = strings.Trim(s, spaces)
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}
