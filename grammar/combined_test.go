package grammar

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ingotml/ingot/internal/limits/runtest"
)

// combiner makes schemas of all keywords over few names and values, so that keywords meet.
type combiner struct {
	r      *rand.Rand
	shared bool // they refer to the same few schemas
}

// root returns a schema with all that it refers to.
func (c combiner) root(depth int) string {
	source := c.schema(depth)
	if !c.shared || !strings.HasPrefix(source, `{"`) {
		return source
	}
	c.shared = false
	return fmt.Sprintf(`{"$defs": {"p": %s, "q": %s, "r": %s}, %s`, c.schema(1), c.schema(1), c.schema(2), source[1:])
}

func (c combiner) pick(all ...string) string { return all[c.r.IntN(len(all))] }

// schema returns a schema of a few keywords.
func (c combiner) schema(depth int) string {
	if depth == 0 || c.r.IntN(12) == 0 {
		return c.pick(`true`, `{}`, `false`, `{"type": "string"}`, `{"type": "integer"}`, `{"const": 1}`, `{"minimum": 2}`)
	}
	seen := map[string]bool{}
	var keys []string
	for range 1 + c.r.IntN(4) {
		text := c.keyword(depth - 1)
		if name, _, _ := strings.Cut(text, ":"); !seen[name] {
			seen[name] = true
			keys = append(keys, text)
		}
	}
	return "{" + strings.Join(keys, ", ") + "}"
}

func (c combiner) list(depth int) string {
	parts := make([]string, 1+c.r.IntN(3))
	for i := range parts {
		parts[i] = c.schema(depth)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func (c combiner) keyword(depth int) string {
	n := c.r.IntN(4)
	name := func() string { return c.pick("a", "b", "ab", "c") }
	if c.shared && c.r.IntN(4) == 0 {
		return `"$ref": ` + c.pick(`"#/$defs/p"`, `"#/$defs/q"`, `"#/$defs/r"`)
	}
	switch c.r.IntN(32) {
	case 0, 1:
		return `"type": ` + c.pick(`"object"`, `"array"`, `"string"`, `"integer"`, `["number", "null"]`,
			`["object", "array"]`)
	case 2:
		return `"enum": ` + c.pick(`[1, 2, "a"]`, `["a", "ab", null]`, `[true, {"a": 1}, [1]]`)
	case 3:
		return `"const": ` + c.value(1)
	case 4:
		return fmt.Sprintf(`"minimum": %d`, n-1)
	case 5:
		return fmt.Sprintf(`"exclusiveMaximum": %d`, n+1)
	case 6:
		return `"multipleOf": ` + c.pick("2", "0.5", "3", "10")
	case 7:
		return fmt.Sprintf(`"minLength": %d`, n)
	case 8:
		return fmt.Sprintf(`"maxLength": %d`, n)
	case 9:
		return `"pattern": "` + c.pick("^a", "b$", "^[ab]*$", "a.b", "^(?:aa|b)+$") + `"`
	case 10, 11:
		return fmt.Sprintf(`"properties": {"a": %s, %q: %s}`, c.schema(depth), c.pick("b", "c", "ab"), c.schema(depth))
	case 12:
		return fmt.Sprintf(`"required": [%q]`, name())
	case 13:
		return `"additionalProperties": ` + c.schema(depth)
	case 14:
		return fmt.Sprintf(`"patternProperties": {%q: %s}`, c.pick("^a", "b"), c.schema(depth))
	case 15:
		return `"propertyNames": ` + c.schema(depth)
	case 16:
		return fmt.Sprintf(`"minProperties": %d`, n)
	case 17:
		return fmt.Sprintf(`"maxProperties": %d`, n)
	case 18:
		return fmt.Sprintf(`"dependentRequired": {%q: [%q]}`, name(), name())
	case 19:
		return fmt.Sprintf(`"dependentSchemas": {%q: %s}`, name(), c.schema(depth))
	case 20:
		return `"items": ` + c.schema(depth)
	case 21:
		return `"prefixItems": ` + c.list(depth)
	case 22:
		return fmt.Sprintf(`"contains": %s, "minContains": %d`, c.schema(depth), n%3)
	case 23:
		return fmt.Sprintf(`"minItems": %d, "maxItems": %d`, n%2, n)
	case 24:
		return `"not": ` + c.schema(depth)
	case 25:
		return `"anyOf": ` + c.list(depth)
	case 26:
		return `"oneOf": ` + c.list(depth)
	case 27:
		return `"allOf": ` + c.list(depth)
	case 28, 29:
		return `"uniqueItems": true`
	case 30:
		return fmt.Sprintf(`"if": %s, "then": %s, "else": %s`, c.schema(depth), c.schema(depth), c.schema(depth))
	}
	return c.pick(`"unevaluatedProperties": `, `"unevaluatedItems": `) + c.schema(depth)
}

// value returns an instance.
func (c combiner) value(depth int) string {
	switch k := c.r.IntN(10); {
	case k < 3 || depth == 0:
		return c.pick("0", "1", "2", "3", "-1", "1.5", "10", `"a"`, `"ab"`, `"aab"`, `""`, "null", "true")
	case k < 5:
		var items []string
		for range c.r.IntN(4) {
			items = append(items, c.value(depth-1))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	var members []string
	for _, name := range []string{"a", "b", "ab", "c"} {
		if c.r.IntN(2) == 0 {
			members = append(members, fmt.Sprintf("%q: %s", name, c.value(depth-1)))
		}
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// FuzzCombined compares grammars of combined keywords with a validator that nobody here wrote: what a grammar accepts
// is valid, and so is what its masks allow, step by step, with and without a budget.
func FuzzCombined(f *testing.F) {
	for seed := range uint64(runtest.Rounds(300)) {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	v := smallVocabulary()
	f.Fuzz(func(t *testing.T, seed uint64, shared bool) {
		c := combiner{rand.New(rand.NewPCG(seed, 27)), shared}
		source := c.root(1 + c.r.IntN(3))
		g, err := CompileSchema(t.Context(), []byte(source))
		if err != nil {
			checkErrors(t, err)
			return
		}
		valid := validator(t, source)
		for range 30 {
			text := c.value(3)
			accepted, err := g.AcceptsJSON([]byte(text))
			if err != nil {
				t.Fatalf("%s: %s: %v", source, text, err)
			}
			instance, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			if err != nil || !json.Valid([]byte(text)) {
				t.Fatal(err)
			}
			if wrong := valid.Validate(instance); accepted && wrong != nil {
				t.Fatalf("%s accepts %s: %v", source, text, wrong)
			}
		}
		try(t, g, v, seed, func(text string) bool {
			wrong := validate(valid, text)
			if wrong != nil {
				t.Errorf("%s allows %s: %v", source, text, wrong)
			}
			return wrong == nil
		})
	})
}
