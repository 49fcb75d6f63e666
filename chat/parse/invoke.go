package parse

import (
	"strings"

	"github.com/ingotml/ingot/chat/parse/notation"
)

// invokeForm returns the form of calls as XML elements, one or more between the tags open and end: <invoke
// name="f"><parameter name="k">v</parameter></invoke>. mark precedes the names of elements (DeepSeek V3.2). The body
// may also be JSON.
func invokeForm(open, end, mark string) form {
	e := &elements{
		open: open, end: end, strict: true,
		call: "<" + mark + "invoke ", callEnd: "</" + mark + "invoke>",
		param: "<" + mark + "parameter ", paramEnd: "</" + mark + "parameter>",
		name: func(head string) string { return attribute(head, "name") },
		arg: func(head, value string) arg {
			a := arg{key: attribute(head, "name"), value: value}
			switch attribute(head, "string") {
			case "true":
				a.json = notation.Quote(value)
			case "false":
				if v, err := notation.Compact(value); err == nil {
					a.json = v
				}
			default:
				a.value = oneLine(value)
			}
			return a
		},
	}
	return orJSON(form{open: open, tag: end, end: func(o offer) ender { return e.scan(o) }, parse: e.parse})
}

// attribute returns an attribute of an element, "" if there is none. head is the opening tag without its name and >.
func attribute(head, name string) string {
	_, rest, _ := strings.Cut(" "+head, " "+name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
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
