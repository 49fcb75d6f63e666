package parse

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/chat/parse/notation"
	"github.com/ingotml/ingot/internal/limits"
)

// ErrNoGrammar means that no grammar can describe the calls of a format.
var ErrNoGrammar = errors.New("no grammar can describe the model's tool calls")

// Offer is a tool whose calls a grammar allows.
type Offer struct {
	Tool
	// Strict restricts the arguments to the tool's schema. In formats that do not write strings as JSON, a string
	// parameter is restricted only if it is an enum. If not strict, the grammar allows all arguments that the format can
	// write.
	Strict bool
}

// Grammar describes tool calls as EBNF rules of package grammar, without the rule root.
type Grammar struct {
	Rules string // "calls" matches one or more calls; "rest" matches the same text after Open
	Open  string // opening tag of calls; "" if the format has none and only the text distinguishes calls from content
	// Final is the rule that matches everything before the final message, thinking included; "words" matches any final
	// message, and "calls" a whole response, too. "" if a response is one message.
	Final string
}

// FinalRules returns the EBNF rules of a format whose responses have several messages, or "". Rule "final" matches
// everything before the final message, with tag, the text at its end.
func FinalRules(name string) (rules, tag string) {
	if f, ok := lookup(name); ok {
		return f.rules, f.final
	}
	return "", ""
}

// CallGrammar returns the grammar of a format's calls: exactly one call with once, otherwise one or more. The error
// wraps ErrNoGrammar or reports a schema that is not a JSON object. Unsupported schemas are reported later, when the
// caller compiles the grammar.
func CallGrammar(name string, offers []Offer, once bool) (Grammar, error) {
	f, _ := lookup(name)
	if f == nil || f.syntax == nil {
		return Grammar{}, fmt.Errorf("%w: format %q is not supported", ErrNoGrammar, excerpt(name))
	}
	w := f.syntax
	if len(offers) == 0 {
		return Grammar{}, fmt.Errorf("%w: there are no tools", ErrNoGrammar)
	}
	var b strings.Builder
	var calls []string
	for i, o := range offers {
		call, err := w.call(o)
		if err != nil {
			return Grammar{}, fmt.Errorf("tool %q: %w", excerpt(o.Name), err)
		}
		rule := fmt.Sprintf("call%d", i)
		fmt.Fprintf(&b, "%s ::= %s\n", rule, call)
		calls = append(calls, rule)
		if b.Len() > limits.GrammarSource {
			return Grammar{}, fmt.Errorf("the grammar of the tools exceeds %d bytes", limits.GrammarSource)
		}
	}
	more := ""
	if !once {
		more = fmt.Sprintf(" (%s call)*", literal(w.next))
	}
	fmt.Fprintf(&b, "call ::= %s\n", strings.Join(calls, " | "))
	if w.head != "" {
		fmt.Fprintf(&b, "calls ::= %s call\n%s", w.head, f.rules)
		return Grammar{Rules: b.String(), Final: "final"}, nil
	}
	fmt.Fprintf(&b, "rest ::= %s call%s %s\n", literal(w.begin), more, literal(w.end))
	fmt.Fprintf(&b, "calls ::= %s rest\n", literal(w.open))
	fmt.Fprintf(&b, "key ::= [A-Za-z_] [A-Za-z0-9_.-]{0,63}\n")
	if w.avoid != "" {
		fmt.Fprintf(&b, "text ::= %s\n", without(w.avoid))
	}
	return Grammar{Rules: b.String(), Open: w.open}, nil
}

// callSyntax is the syntax of calls as the models of a format were trained to write them.
type callSyntax struct {
	open             string // opening tag
	begin, next, end string // between the tag and the first call, between calls, after the last call
	avoid            string // closing tag of unquoted string values; "" if there are none
	head             string // instead of all of the above: an expression before the only call of a response
	call             func(Offer) (string, error)
}

// objects describes calls as JSON objects with these keys.
func objects(name, arguments string) func(Offer) (string, error) {
	return func(o Offer) (string, error) {
		args, err := o.arguments()
		return seq(literal(`{"`+name+`": `+string(notation.Quote(o.Name))+`, "`+arguments+`": `), args, literal("}")), err
	}
}

// named describes calls as a name, a separator and arguments as JSON.
func named(between string) func(Offer) (string, error) {
	return func(o Offer) (string, error) {
		args, err := o.arguments()
		return seq(literal(o.Name+between), args), err
	}
}

// keyed describes calls as JSON objects whose only key is the name.
func keyed(o Offer) (string, error) {
	args, err := o.arguments()
	return seq(literal(`{`+string(notation.Quote(o.Name))+`: `), args, literal("}")), err
}

// solarCall describes calls of Solar Open, which have an id.
func solarCall(o Offer) (string, error) {
	args, err := o.arguments()
	return seq("[a-z0-9]{10,10}", literal(solarName+o.Name+solarArgs), args), err
}

// arguments returns the rule of a call's arguments as JSON.
func (o Offer) arguments() (string, error) {
	if !o.Strict {
		return jsonSign + `{"type": "object"}`, nil
	}
	schema, err := o.schema()
	if err != nil {
		return "", err
	}
	text, err := jinja.EncodeJSON(schema)
	return jsonSign + text, err
}

// schema returns the schema of the arguments. Its type defaults to object.
func (o Offer) schema() (*jinja.Dict, error) {
	out := jinja.NewDict()
	if len(o.Parameters) > 0 && string(o.Parameters) != "null" {
		d, err := jinja.DecodeVars(o.Parameters)
		if err != nil {
			return nil, fmt.Errorf("parameters: %w", err)
		}
		out = d
	}
	if _, typed := out.Get("type"); !typed {
		_ = out.Set("type", "object") // cannot fail: the key is a string
	}
	return out, nil
}

// element describes calls whose arguments are in tags, one tag per argument.
type element struct {
	head, afterName, tail  string // of a call
	open, afterKey, closed string // of an argument
	beforeJSON             string // replaces afterKey if the value is JSON; "": afterKey
	avoid                  string // text that a value must not contain

	defs definitions // of the current tool
}

func (e element) call(o Offer) (string, error) {
	schema, err := o.schema()
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(o.Name, "<>\"\n") {
		return "", fmt.Errorf("%w: the tool's name contains one of the characters < > \" or a line break", ErrNoGrammar)
	}
	e.defs = definitionsOf(o.Parameters)
	head, tail := literal(e.head+o.Name+e.afterName), literal(e.tail)
	properties, _ := dict(schema, "properties")
	if more, given := schema.Get("additionalProperties"); !o.Strict || properties == nil && (!given || more != false) {
		key := "key"
		var names []string
		if properties != nil {
			properties.Each(func(k, _ jinja.Value) bool { names = append(names, literal(k.(string))); return true })
		}
		if len(names) > 0 {
			key = group(strings.Join(names, " | "))
		}
		value := seq(literal(e.afterKey), "text")
		if e.beforeJSON != "" {
			value = group(value + " | " + seq(literal(e.beforeJSON), jsonSign+"{}"))
		}
		return seq(head, group(seq(literal(e.open), key, value, literal(e.closed)))+"*", tail), nil
	}
	if properties == nil {
		return seq(head, tail), nil
	}
	required := texts(schema, "required")
	parts, size := []string{head}, 0
	properties.Each(func(k, v jinja.Value) bool {
		name := k.(string)
		var value, after string
		if value, err = e.value(schema, v); err != nil {
			err = fmt.Errorf("parameter %q: %w", excerpt(name), err)
			return false
		}
		if after = e.afterKey; e.beforeJSON != "" && strings.HasPrefix(value, jsonSign) {
			after = e.beforeJSON
		}
		part := seq(literal(e.open+name+after), value, literal(e.closed))
		if !slices.Contains(required, name) {
			part = group(part) + "?"
		}
		parts = append(parts, part)
		// Each parameter may include a copy of the schema's definitions.
		if size += len(part); size > limits.GrammarSource {
			err = fmt.Errorf("its grammar exceeds %d bytes", limits.GrammarSource)
		}
		return err == nil
	})
	return seq(append(parts, tail)...), err
}

// value returns the rule of an argument: JSON if its schema excludes strings, the values of a string enum, or any text.
func (e element) value(root *jinja.Dict, schema jinja.Value) (string, error) {
	d, ok := schema.(*jinja.Dict)
	if !ok {
		return "text", nil
	}
	text, err := jinja.EncodeJSON(d)
	if err != nil {
		return "", err
	}
	types := e.defs.types(json.RawMessage(text), 0)
	if len(types) > 0 && !slices.Contains(types, "string") {
		return jsonSign + within(root, text), nil
	}
	var words []string
	for _, w := range texts(d, "enum") {
		if strings.Contains(w, e.avoid) {
			return "text", nil
		}
		words = append(words, literal(w))
	}
	if len(words) == 0 {
		return "text", nil
	}
	return group(strings.Join(words, " | ")), nil
}

// within adds the definitions of root to one of its subschemas.
func within(root *jinja.Dict, schema string) string {
	var defs []string
	for _, key := range []string{"$defs", "definitions"} {
		if d, ok := dict(root, key); ok {
			if text, err := jinja.EncodeJSON(d); err == nil {
				defs = append(defs, fmt.Sprintf("%q: %s, ", key, text))
			}
		}
	}
	if len(defs) == 0 {
		return schema
	}
	return "{" + strings.Join(defs, "") + `"allOf": [` + schema + "]}"
}

func dict(d *jinja.Dict, key string) (*jinja.Dict, bool) {
	v, _ := d.Get(key)
	out, ok := v.(*jinja.Dict)
	return out, ok
}

// texts returns a list of strings; nil if it contains anything else.
func texts(d *jinja.Dict, key string) (out []string) {
	v, _ := d.Get(key)
	list, ok := v.(*jinja.List)
	if !ok {
		return nil
	}
	for _, x := range list.Items {
		s, ok := x.(string)
		if !ok {
			return nil
		}
		out = append(out, s)
	}
	return out
}

// EBNF notation.

// jsonSign introduces a JSON schema.
const jsonSign = "%json "

func seq(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" || s == `""` }), " ")
}

func group(s string) string { return "(" + s + ")" }

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

// literal returns a quoted terminal.
func literal(s string) string { return `"` + escapes.Replace(s) + `"` }

var classEscapes = regexp.MustCompile(`[\\\]\[^-]`)

// without returns the rule of any text that does not contain tag. The first character of tag must occur in it only
// once. Such a text consists of characters that do not begin the tag, and of proper prefixes of the tag. A prefix ends
// before another prefix, before a character that does not continue it, or at the end of the text.
func without(tag string) string {
	class := func(chars string) string { return "[^" + classEscapes.ReplaceAllString(chars, `\$0`) + "]" }
	runes := []rune(tag)
	first, last := string(runes[0]), len(runes)-1
	begun := ""                                  // rest of a prefix, from its second character
	broken := class(first + string(runes[last])) // rest of a prefix, and a character that does not continue it
	for i := last - 1; i > 0; i-- {
		r := string(runes[i])
		broken = group(class(first+r) + " | " + literal(r) + " " + broken)
		begun = group(seq(literal(r), begun)) + "?"
	}
	beginnings := group(seq(literal(first), begun)) + "*"
	return group(class(first)+" | "+seq(beginnings, literal(first), broken)) + "* " + beginnings
}
