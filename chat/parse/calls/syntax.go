package calls

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/chat/parse/notation"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/clip"
)

// Syntax is the syntax of calls as the models of a format were trained to write them.
type Syntax struct {
	Open             string // opening tag
	Begin, Next, End string // between the tag and the first call, between calls, after the last call
	Avoid            string // closing tag of unquoted string values; "" if there are none
	Head             string // instead of all of the above: an expression before the only call of a response
	Call             func(Offer) (string, error)
}

// Objects describes calls as JSON objects with these keys.
func Objects(name, arguments string) func(Offer) (string, error) {
	return func(o Offer) (string, error) {
		args, err := o.Arguments()
		return Seq(Literal(`{"`+name+`": `+string(notation.Quote(o.Name))+`, "`+arguments+`": `), args, Literal("}")), err
	}
}

// Named describes calls as a name, a separator and arguments as JSON.
func Named(between string) func(Offer) (string, error) {
	return func(o Offer) (string, error) {
		args, err := o.Arguments()
		return Seq(Literal(o.Name+between), args), err
	}
}

// Keyed describes calls as JSON objects whose only key is the name.
func Keyed(o Offer) (string, error) {
	args, err := o.Arguments()
	return Seq(Literal(`{`+string(notation.Quote(o.Name))+`: `), args, Literal("}")), err
}

// Element describes calls whose arguments are in tags, one tag per argument.
type Element struct {
	Head, AfterName, Tail  string // of a call
	Open, AfterKey, Closed string // of an argument
	BeforeJSON             string // replaces afterKey if the value is JSON; "": afterKey
	Avoid                  string // text that a value must not contain

	defs Definitions // of the current tool
}

func (e Element) Call(o Offer) (string, error) {
	schema, err := o.schema()
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(o.Name, "<>\"\n") {
		return "", fmt.Errorf("%w: the tool's name contains one of the characters < > \" or a line break", ErrNoGrammar)
	}
	e.defs = DefinitionsOf(o.Parameters)
	head, tail := Literal(e.Head+o.Name+e.AfterName), Literal(e.Tail)
	properties, _ := dict(schema, "properties")
	if more, given := schema.Get("additionalProperties"); !o.Strict || properties == nil && (!given || more != false) {
		key := "key"
		var names []string
		if properties != nil {
			properties.Each(func(k, _ jinja.Value) bool { names = append(names, Literal(k.(string))); return true })
		}
		if len(names) > 0 {
			key = group(strings.Join(names, " | "))
		}
		value := Seq(Literal(e.AfterKey), "text")
		if e.BeforeJSON != "" {
			value = group(value + " | " + Seq(Literal(e.BeforeJSON), jsonSign+"{}"))
		}
		return Seq(head, group(Seq(Literal(e.Open), key, value, Literal(e.Closed)))+"*", tail), nil
	}
	if properties == nil {
		return Seq(head, tail), nil
	}
	required := texts(schema, "required")
	parts, size := []string{head}, 0
	properties.Each(func(k, v jinja.Value) bool {
		name := k.(string)
		var value, after string
		if value, err = e.value(schema, v); err != nil {
			err = fmt.Errorf("parameter %q: %w", clip.Text(name, 40), err)
			return false
		}
		if after = e.AfterKey; e.BeforeJSON != "" && strings.HasPrefix(value, jsonSign) {
			after = e.BeforeJSON
		}
		part := Seq(Literal(e.Open+name+after), value, Literal(e.Closed))
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
	return Seq(append(parts, tail)...), err
}

// value returns the rule of an argument: JSON if its schema excludes strings, the values of a string enum, or any text.
func (e Element) value(root *jinja.Dict, schema jinja.Value) (string, error) {
	d, ok := schema.(*jinja.Dict)
	if !ok {
		return "text", nil
	}
	text, err := jinja.EncodeJSON(d)
	if err != nil {
		return "", err
	}
	types := e.defs.Types(json.RawMessage(text), 0)
	if len(types) > 0 && !slices.Contains(types, "string") {
		return jsonSign + within(root, text), nil
	}
	var words []string
	for _, w := range texts(d, "enum") {
		if strings.Contains(w, e.Avoid) {
			return "text", nil
		}
		words = append(words, Literal(w))
	}
	if len(words) == 0 {
		return "text", nil
	}
	return group(strings.Join(words, " | ")), nil
}
