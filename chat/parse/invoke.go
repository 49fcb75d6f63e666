package parse

import (
	"strings"

	"github.com/ingotml/ingot/chat/parse/calls"
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
func invokes(open, end, mark string) *calls.Syntax {
	e := calls.Element{
		Head: "<" + mark + `invoke name="`, AfterName: "\">\n", Tail: "</" + mark + "invoke>",
		Open: "<" + mark + `parameter name="`, AfterKey: `">`, Closed: "</" + mark + "parameter>\n", Avoid: "</" + mark +
			"parameter>",
	}
	if mark != "" {
		e.AfterKey, e.BeforeJSON = `" string="true">`, `" string="false">`
	}
	return &calls.Syntax{Open: open, Begin: "\n", Next: "\n", End: "\n" + end, Avoid: e.Avoid, Call: e.Call}
}
