package parse

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/limits"
)

// ErrNoGrammar says that a format's calls cannot be described.
var ErrNoGrammar = fmt.Errorf("it is not known how the model writes calls")

// Offer is a tool that a grammar allows calls of.
type Offer struct {
	Tool
	// Strict holds the arguments to the tool's schema, as far as the format writes them as JSON: where it writes texts as they are, any
	// text goes, but for those of an enum. Without it arguments are any that the format can write.
	Strict bool
}

// Grammar is calls of tools as EBNF of package grammar: rules without the one named root.
type Grammar struct {
	Rules string // "calls" is a whole text of one or more calls; "rest" is what of that comes after Open
	Open  string // the tag with which calls begin; "" where they have none, and only their text tells them from an answer
}

// CallGrammar describes how the models of a format call tools: one of them once, or any of them any number of times. Its error wraps
// ErrNoGrammar, or is about a schema that is no JSON object. What the schemas demand is for who compiles the grammar to find out.
func CallGrammar(name string, offers []Offer, once bool) (Grammar, error) {
	f, _ := lookup(name)
	if f == nil || f.writes == nil {
		return Grammar{}, fmt.Errorf("%w (%s)", ErrNoGrammar, clip(name))
	}
	w := f.writes
	if len(offers) == 0 {
		return Grammar{}, fmt.Errorf("%w: there is no tool", ErrNoGrammar)
	}
	var b strings.Builder
	var calls []string
	for i, o := range offers {
		call, err := w.call(o)
		if err != nil {
			return Grammar{}, fmt.Errorf("tool %q: %w", clip(o.Name), err)
		}
		rule := fmt.Sprintf("call%d", i)
		fmt.Fprintf(&b, "%s ::= %s\n", rule, call)
		calls = append(calls, rule)
		if b.Len() > limits.GrammarSource {
			return Grammar{}, fmt.Errorf("the tools make a grammar of more than %d bytes", limits.GrammarSource)
		}
	}
	more := ""
	if !once {
		more = fmt.Sprintf(" (%s call)*", literal(w.next))
	}
	fmt.Fprintf(&b, "call ::= %s\n", strings.Join(calls, " | "))
	fmt.Fprintf(&b, "rest ::= %s call%s %s\n", literal(w.begin), more, literal(w.end))
	fmt.Fprintf(&b, "calls ::= %s rest\n", literal(w.open))
	fmt.Fprintf(&b, "key ::= [A-Za-z_] [A-Za-z0-9_.-]{0,63}\n")
	if w.avoid != "" {
		fmt.Fprintf(&b, "text ::= %s\n", without(w.avoid))
	}
	return Grammar{Rules: b.String(), Open: w.open}, nil
}

// writing is how the models of a format write calls, in the form that they were trained with.
type writing struct {
	open             string // tag
	begin, next, end string // between that and the first call, between calls, after the last
	avoid            string // the tag that ends a value that is text as it is; "" where there are no such values
	call             func(Offer) (string, error)
}

// objects are calls as JSON objects with these keys.
func objects(name, arguments string) func(Offer) (string, error) {
	return func(o Offer) (string, error) {
		args, err := o.arguments()
		return seq(literal(`{"`+name+`": `+string(quote(o.Name))+`, "`+arguments+`": `), args, literal("}")), err
	}
}

// named are calls as a name and JSON.
func named(between string) func(Offer) (string, error) {
	return func(o Offer) (string, error) {
		args, err := o.arguments()
		return seq(literal(o.Name+between), args), err
	}
}

// arguments are the arguments of a call as JSON.
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

// schema is that of the arguments, which are an object.
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
		_ = out.Set("type", "object") // text can be a key
	}
	return out, nil
}

// element is how a format writes arguments one by one, in tags.
type element struct {
	head, afterName, tail  string // of a call
	open, afterKey, closed string // of an argument
	beforeJSON             string // in place of afterKey where the value is JSON; "" = the same
	avoid                  string // what a value cannot hold

	defs definitions // of the tool at hand
}

func (e element) call(o Offer) (string, error) {
	schema, err := o.schema()
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(o.Name, "<>\"\n") {
		return "", fmt.Errorf("%w: its name has characters of their tags", ErrNoGrammar)
	}
	e.defs = definitionsOf(o.Parameters)
	head, tail := literal(e.head+o.Name+e.afterName), literal(e.tail)
	properties, _ := dict(schema, "properties")
	if !o.Strict {
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
			err = fmt.Errorf("parameter %q: %w", clip(name), err)
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
		// Each parameter may bring the definitions along.
		if size += len(part); size > limits.GrammarSource {
			err = fmt.Errorf("its grammar has more than %d bytes", limits.GrammarSource)
		}
		return err == nil
	})
	return seq(append(parts, tail)...), err
}

// value is an argument of a schema: JSON where it is never a text, one of the texts of an enum, else any text.
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

// within is a schema with the definitions of the one that it stands in.
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

// texts is a list of texts; one that holds something else is none.
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

// The notation of EBNF.

// jsonSign stands before a schema.
const jsonSign = "%json "

func seq(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" || s == `""` }), " ")
}

func group(s string) string { return "(" + s + ")" }

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

// literal is a text as it is.
func literal(s string) string { return `"` + escapes.Replace(s) + `"` }

var classEscapes = regexp.MustCompile(`[\\\]\[^-]`)

// without is any text that a tag does not stand in, whose first character is in it once. Such a text is characters that begin no tag, and
// beginnings of one that break off: before another beginning, before a character that does not go on, or where the text ends.
func without(tag string) string {
	class := func(chars string) string { return "[^" + classEscapes.ReplaceAllString(chars, `\$0`) + "]" }
	runes := []rune(tag)
	first, last := string(runes[0]), len(runes)-1
	begun := ""                                  // how a beginning may go on, from its second character
	broken := class(first + string(runes[last])) // how one breaks off
	for i := last - 1; i > 0; i-- {
		r := string(runes[i])
		broken = group(class(first+r) + " | " + literal(r) + " " + broken)
		begun = group(seq(literal(r), begun)) + "?"
	}
	beginnings := group(seq(literal(first), begun)) + "*"
	return group(class(first)+" | "+seq(beginnings, literal(first), broken)) + "* " + beginnings
}
