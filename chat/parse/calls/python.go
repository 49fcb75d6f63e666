package calls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/clip"
)

// Pythonic describes calls as NAME(key=value, ...), whose values are JSON: required arguments come first, then optional
// ones in the order of the schema. If none is required, an optional argument may repeat; the last one counts.
func Pythonic(o Offer) (string, error) {
	schema, err := o.schema()
	if err != nil {
		return "", err
	}
	if !IsName(o.Name) {
		return "", fmt.Errorf("%w: the tool's name is not one of a function", ErrNoGrammar)
	}
	head := Literal(o.Name + "(")
	properties, _ := dict(schema, "properties")
	if more, given := schema.Get("additionalProperties"); !o.Strict || properties == nil && (!given || more != false) {
		one := Seq("key", Literal("="), jsonSign+"{}")
		return Seq(head, optional(one+" "+group(Seq(Literal(", "), one))+"*"), Literal(")")), nil
	}
	if properties == nil {
		return Seq(head, Literal(")")), nil
	}
	required := texts(schema, "required")
	var needed, others []string
	size := 0
	properties.Each(func(k, v jinja.Value) bool {
		name := k.(string)
		var text string
		if text, err = jinja.EncodeJSON(v); err == nil && !IsName(name) {
			err = fmt.Errorf("%w: parameter %q is not a name", ErrNoGrammar, clip.Text(name, 40))
		}
		part := Seq(Literal(name+"="), jsonSign+within(schema, text))
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
	comma := Literal(", ")
	if len(needed) == 0 && len(others) > 0 {
		one := group(strings.Join(others, " | "))
		return Seq(head, optional(one+" "+group(Seq(comma, one))+"*"), Literal(")")), nil
	}
	parts := []string{head, strings.Join(needed, " "+comma+" ")}
	for _, p := range others {
		parts = append(parts, optional(Seq(comma, p)))
	}
	return Seq(append(parts, Literal(")"))...), nil
}
