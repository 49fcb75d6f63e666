package parse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/internal/limits"
)

// pythonic describes calls as NAME(key=value, ...), whose values are JSON: required arguments come first, then optional
// ones in the order of the schema. If none is required, an optional argument may repeat; the last one counts.
func pythonic(o Offer) (string, error) {
	schema, err := o.schema()
	if err != nil {
		return "", err
	}
	if !isName(o.Name) {
		return "", fmt.Errorf("%w: the tool's name is not one of a function", ErrNoGrammar)
	}
	head := literal(o.Name + "(")
	properties, _ := dict(schema, "properties")
	if more, given := schema.Get("additionalProperties"); !o.Strict || properties == nil && (!given || more != false) {
		one := seq("key", literal("="), jsonSign+"{}")
		return seq(head, optional(one+" "+group(seq(literal(", "), one))+"*"), literal(")")), nil
	}
	if properties == nil {
		return seq(head, literal(")")), nil
	}
	required := texts(schema, "required")
	var needed, others []string
	size := 0
	properties.Each(func(k, v jinja.Value) bool {
		name := k.(string)
		var text string
		if text, err = jinja.EncodeJSON(v); err == nil && !isName(name) {
			err = fmt.Errorf("%w: parameter %q is not a name", ErrNoGrammar, excerpt(name))
		}
		part := seq(literal(name+"="), jsonSign+within(schema, text))
		if size += 2 * len(part); size > limits.GrammarSource {
			err = fmt.Errorf("its grammar exceeds %d bytes", limits.GrammarSource)
		}
		if slices.Contains(required, name) {
			needed = append(needed, part)
		} else {
			others = append(others, part)
		}
		return err == nil
	})
	if err != nil {
		return "", err
	}
	comma := literal(", ")
	if len(needed) == 0 && len(others) > 0 {
		one := group(strings.Join(others, " | "))
		return seq(head, optional(one+" "+group(seq(comma, one))+"*"), literal(")")), nil
	}
	parts := []string{head, strings.Join(needed, " "+comma+" ")}
	for _, p := range others {
		parts = append(parts, optional(seq(comma, p)))
	}
	return seq(append(parts, literal(")"))...), nil
}

func optional(s string) string { return group(s) + "?" }
