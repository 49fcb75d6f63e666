package parse

import (
	"fmt"
	"strings"
)

// invokeForm returns the form of calls as XML elements, one or more between the tags open and end: <invoke
// name="f"><parameter name="k">v</parameter></invoke>. mark precedes the names of elements (DeepSeek V3.2).
func invokeForm(open, end, mark string) form {
	return form{
		open: open, tag: end,
		end: tagsEnd(end),
		parse: func(t tools, body string, complete bool) ([]ToolCall, error) {
			if firstByte([]byte(body)) == '{' { // instead of elements
				return parseJSON(t, body, complete)
			}
			return parseInvokes(t, mark, body, complete)
		},
	}
}

func parseInvokes(t tools, mark, body string, complete bool) ([]ToolCall, error) {
	wrong := func(why string) ([]ToolCall, error) {
		if !complete {
			return nil, fmt.Errorf("%w: %s", ErrIncomplete, why)
		}
		return nil, fmt.Errorf("%w: %s", ErrCall, why)
	}
	var calls []ToolCall
	for rest := strings.Trim(body, spaces); rest != ""; rest = strings.TrimLeft(rest, spaces) {
		head, inner, _ := strings.Cut(rest, ">")
		name, ok := attribute(head, "<"+mark+"invoke", "name")
		if !ok || name == "" {
			return wrong("the call does not begin with an invoke element that has a name")
		}
		args, after, ok := parseParameters(mark, inner)
		if !ok {
			return wrong("an element is not closed")
		}
		if !complete {
			if err := t.checkTruncated(name, args); err != nil {
				return nil, err
			}
		}
		c, err := t.call(name, args)
		if err != nil {
			return nil, err
		}
		calls = append(calls, c)
		rest = after
	}
	if len(calls) == 0 {
		return wrong("empty body")
	}
	return calls, nil
}

// parseParameters parses the parameters of an invoke element and its closing tag.
func parseParameters(mark, s string) (args []arg, after string, ok bool) {
	for {
		s = strings.TrimLeft(s, spaces)
		if after, ok := strings.CutPrefix(s, "</"+mark+"invoke>"); ok {
			return args, after, true
		}
		head, rest, ok := strings.Cut(s, ">")
		name, named := attribute(head, "<"+mark+"parameter", "name")
		if !ok || !named {
			return nil, "", false
		}
		value, rest, ok := strings.Cut(rest, "</"+mark+"parameter>")
		if !ok {
			return nil, "", false
		}
		a := arg{key: name, value: value}
		switch kind, _ := attribute(head, "<"+mark+"parameter", "string"); kind {
		case "true":
			a.json = quote(value)
		case "false":
			if v, err := compact(value); err == nil {
				a.json = v
			}
		default:
			a.value = strings.TrimSuffix(strings.TrimPrefix(value, "\n"), "\n")
		}
		args = append(args, a)
		s = rest
	}
}

// attribute returns an attribute of an element. head is the opening tag without ">".
func attribute(head, element, name string) (value string, ok bool) {
	rest, ok := strings.CutPrefix(head, element)
	if !ok {
		return "", false
	}
	_, rest, ok = strings.Cut(rest, " "+name+`="`)
	if !ok {
		return "", false
	}
	value, _, ok = strings.Cut(rest, `"`)
	return value, ok
}

// invokes returns the syntax of these calls. With a mark, an attribute of a parameter tells whether its value is a
// string.
func invokes(open, end, mark string) *callSyntax {
	e := element{
		head: "<" + mark + `invoke name="`, afterName: "\">\n", tail: "</" + mark + "invoke>",
		open: "<" + mark + `parameter name="`, afterKey: `">`, closed: "</" + mark + "parameter>\n", avoid: "</" + mark +
			"parameter>",
	}
	if mark != "" {
		e.afterKey, e.beforeJSON = `" string="true">`, `" string="false">`
	}
	return &callSyntax{open: open, begin: "\n", next: "\n", end: "\n" + end, avoid: e.avoid, call: e.call}
}
