package grammar

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// checkTexts checks which texts a grammar accepts.
func checkTexts(t *testing.T, source string, yes, no []string, accepts func(text string) bool) {
	t.Helper()
	for _, text := range yes {
		if !accepts(text) {
			t.Errorf("%s refuses %q", source, text)
		}
	}
	for _, text := range no {
		if accepts(text) {
			t.Errorf("%s accepts %q", source, text)
		}
	}
}

// accepts reports whether a grammar accepts a whole text.
func accepts(t testing.TB, g *Grammar, v *Vocabulary, text string) bool {
	t.Helper()
	m, err := g.Matcher(v, -1)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []byte(text) {
		if m.Accept(int32(b)) != nil { // the first tokens are the bytes
			return false
		}
	}
	return m.Done()
}

func validator(t testing.TB, schema string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return s
}

func validate(s *jsonschema.Schema, text string) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// For each keyword: accepted values, refused values, and every generated text validates.
func TestKeywords(t *testing.T) {
	v := smallVocabulary()
	for _, c := range []struct {
		schema   string
		yes, no  []string
		restrict bool // some values that it refuses are valid all the same
	}{
		{schema: `true`, yes: []string{`1`, `{"a": [true, null]}`, `"x"`},
			no: []string{``, `nul`, `{"a":1}`, `[1,2]`, ` 1`, `1 `, `01`, `+1`, `.5`, `1.`}, restrict: true},
		{schema: `{}`, yes: []string{`-0.5e-10`, `{}`, `[]`, `""`}, no: []string{`[1, ]`, `{"a"}`, `"\x"`, `"` + "\n" + `"`}},
		{schema: `{"type": "string"}`, yes: []string{`""`, `"é\n\u00e9\ud83d\ude00 \/"`, `"😀"`},
			no: []string{`"\ud83d"`, `"\ude00"`, `"\ud83dx"`, "\"\x80\"", "\"\xed\xa0\x80\"", `1`, `"a`}},
		{schema: `{"type": "integer"}`, yes: []string{`0`, `-7`, `1234567890123456789`},
			no: []string{`12345678901234567890`, `1.5`, `00`, `-`, `"1"`}},
		{schema: `{"type": "number"}`, yes: []string{`0`, `-7.25`, `1e5`, `1.7976931348623157e+307`, `5e-324`,
			`0.1234567890123456`, `1e+22`, `-1.5E+10`},
			no: []string{`1e999`, `1e400`, `0x1`, `1.e5`, `NaN`, `12345678901234567890`, `1.123456789012345678901234567890123`}},
		{schema: `{"type": ["integer", "null"]}`, yes: []string{`null`, `3`}, no: []string{`"3"`, `3.5`}},
		{schema: `{"type": "boolean"}`, yes: []string{`true`, `false`}, no: []string{`null`, `tru`}},
		{schema: `{"enum": ["a", 1, null, {"b": [1, "é"]}, "a b"]}`,
			yes: []string{`"a"`, `1`, `null`, `{"b": [1, "é"]}`, `{"b": [1, "\u00e9"]}`, `"a b"`},
			no:  []string{`"b"`, `2`, `{"b":[1, "é"]}`}},
		{schema: `{"enum": [1, 2.5, "x", 10], "type": "integer", "maximum": 5}`, yes: []string{`1`},
			no: []string{`2.5`, `"x"`, `10`}},
		{schema: `{"const": {"a": 1}}`, yes: []string{`{"a": 1}`}, no: []string{`{"a": 2}`, `{}`}},
		{schema: `{"type": "string", "minLength": 2, "maxLength": 3}`,
			yes: []string{`"ab"`, `"é😀x"`, `"\n\n"`, `"\ud83d\ude00a"`}, no: []string{`"a"`, `"abcd"`, `""`}},
		{schema: `{"type": "string", "pattern": "^[a-c]+\\d{2}$"}`, yes: []string{`"ab12"`},
			no: []string{`"ab1"`, `"d12"`, `""`}},
		{schema: `{"type": "string", "pattern": "b"}`, yes: []string{`"abc"`, `"b"`, `"\nb"`}, no: []string{`"ac"`, `""`}},
		{schema: `{"type": "string", "pattern": "^a|z$"}`, yes: []string{`"ab"`, `"bz"`, `"a"`},
			no: []string{`"ba"`, `"zb"`}},
		{schema: `{"type": "string", "pattern": "^[\"\\\\\\n]$"}`, yes: []string{`"\""`, `"\\"`, `"\n"`},
			no: []string{`"""`, `"a"`}},
		{schema: `{"type": "string", "pattern": "^[à-ÿ]+$"}`, yes: []string{`"é"`}, no: []string{`"e"`}},
		{schema: `{"type": "string", "pattern": "^[a-z]+$", "maxLength": 3}`, yes: []string{`"abc"`},
			no: []string{`"abcd"`, `""`}},
		{schema: `{"type": "string", "format": "date"}`, yes: []string{`"2024-02-29"`, `"2000-02-29"`, `"1999-12-31"`},
			no: []string{`"2023-02-29"`, `"1900-02-29"`, `"2023-04-31"`, `"2023-13-01"`}},
		{schema: `{"type": "string", "format": "time"}`, yes: []string{`"23:59:59Z"`, `"00:00:00.123+01:30"`},
			no: []string{`"24:00:00Z"`, `"23:59:59"`}},
		{schema: `{"type": "string", "format": "date-time"}`, yes: []string{`"2024-02-29T12:00:00Z"`},
			no: []string{`"2024-02-30T12:00:00Z"`, `"2024-02-29"`}},
		{schema: `{"type": "string", "format": "duration"}`, yes: []string{`"P1Y2M3DT4H5M6S"`, `"PT5M"`, `"P3W"`},
			no: []string{`"P"`, `"PT"`, `"1Y"`}},
		{schema: `{"type": "string", "format": "email"}`, yes: []string{`"a.b@example.com"`}, no: []string{`"a"`, `"a@"`}},
		{schema: `{"type": "string", "format": "hostname"}`, yes: []string{`"a-b.example.com"`},
			no: []string{`"-a"`, `"a..b"`}},
		{schema: `{"type": "string", "format": "ipv4"}`, yes: []string{`"127.0.0.1"`, `"255.255.255.255"`},
			no: []string{`"256.0.0.1"`, `"1.2.3"`, `"01.2.3.4"`}},
		{schema: `{"type": "string", "format": "ipv6"}`, yes: []string{`"::1"`, `"1:2:3:4:5:6:7:8"`, `"fe80::1"`, `"::"`},
			no: []string{`":1"`, `"1:2:3:4:5:6:7:8:9"`, `"1::2::3"`}},
		{schema: `{"type": "string", "format": "uuid"}`, yes: []string{`"123e4567-e89b-12d3-a456-426614174000"`},
			no: []string{`"123e4567"`}},
		{schema: `{"type": "string", "format": "uri"}`, yes: []string{`"https://example.com/a?b=c#d"`},
			no: []string{`"example.com"`}},
		{schema: `{"type": "string", "format": "json-pointer"}`, yes: []string{`""`, `"/a/~0b"`},
			no: []string{`"a"`, `"/~2"`}},
		{schema: `{"type": "string", "format": "password"}`, yes: []string{`"anything"`}, no: []string{`1`}},
		{schema: `{"type": "integer", "minimum": -12, "maximum": 305}`,
			yes: []string{`-12`, `-9`, `0`, `9`, `10`, `99`, `305`}, no: []string{`-13`, `306`, `400`, `1000`, `-0`, `007`}},
		{schema: `{"type": "integer", "exclusiveMinimum": 9, "exclusiveMaximum": 12}`, yes: []string{`10`, `11`},
			no: []string{`9`, `12`}},
		{schema: `{"type": "integer", "minimum": 1.5, "maximum": 3.5}`, yes: []string{`2`, `3`}, no: []string{`1`, `4`}},
		{schema: `{"type": "integer", "minimum": 1000}`, yes: []string{`1000`, `9999999999999999999`},
			no: []string{`999`, `-1000`}},
		{schema: `{"type": "integer", "multipleOf": 7, "minimum": -20, "maximum": 100}`, yes: []string{`0`, `-14`, `98`, `7`},
			no: []string{`1`, `-21`, `105`, `99`}},
		{schema: `{"type": "number", "minimum": 0, "maximum": 1}`,
			yes: []string{`0`, `1`, `0.5`, `0.0`, `1.0`, `0.12345678901234567`}, no: []string{`1.1`, `-0.1`, `2`, `1.01`}},
		{schema: `{"type": "number", "exclusiveMinimum": -1.25, "maximum": 10}`,
			yes: []string{`-1.2`, `-1.24`, `9.99`, `10`, `0`}, no: []string{`-1.25`, `10.1`, `-1.3`, `-2`}},
		{schema: `{"type": "number", "multipleOf": 0.25}`, yes: []string{`0.5`, `1.0`, `3`, `-2.75`},
			no: []string{`0.3`, `0.26`}},
		{schema: `{"type": "number", "multipleOf": 0.01, "minimum": 0, "maximum": 99.99}`,
			yes: []string{`0.5`, `12.34`, `99.99`}, no: []string{`0.005`, `100`}},
		{schema: `{"type": "array"}`, yes: []string{`[]`, `[1, "a", [null]]`}, no: []string{`[1,2]`, `{}`}},
		{schema: `{"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3}`,
			yes: []string{`[1]`, `[1, 2, 3]`}, no: []string{`[]`, `[1, 2, 3, 4]`, `["a"]`}},
		{schema: `{"type": "array", "items": {"type": "boolean"}, "minItems": 2}`,
			yes: []string{`[true, false]`, `[true, true, true]`}, no: []string{`[true]`}},
		{schema: `{"type": "array", "items": {"type": "boolean"}, "maxItems": 0}`, yes: []string{`[]`},
			no: []string{`[true]`}},
		{schema: `{"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": {"type": "null"}}`,
			yes: []string{`[]`, `[1]`, `[1, "a"]`, `[1, "a", null, null]`}, no: []string{`["a"]`, `[1, "a", 1]`}},
		{schema: `{"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false, "minItems": 2}`,
			yes: []string{`[1, "a"]`}, no: []string{`[1]`, `[]`, `[1, "a", null]`}},
		{schema: `{"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "maxItems": 1}`,
			yes: []string{`[1]`, `[]`}, no: []string{`[1, "a"]`}},
		{schema: `{"type": "array", "items": false}`, yes: []string{`[]`}, no: []string{`[1]`}},
		{schema: `{"type": "array", "items": {"type": "null"}, "uniqueItems": false}`, yes: []string{`[null, null]`}},
		{schema: `{"type": "object"}`, yes: []string{`{}`, `{"a": 1, "b": {}}`}, no: []string{`[]`, `{"a":1}`}},
		{schema: `{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"], ` +
			`"additionalProperties": false}`,
			yes: []string{`{"a": 1}`, `{"a": 1, "b": "x"}`}, no: []string{`{}`, `{"b": "x"}`, `{"b": "x", "a": 1}`,
				`{"a": 1, "c": 2}`}},
		{schema: `{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {"type": ` +
			`"null"}}}`,
			yes: []string{`{}`, `{"c": null}`, `{"a": 1, "c": null}`, `{"b": "x"}`},
			no:  []string{`{, "c": null}`, `{"a": 1, }`}},
		{schema: `{"type": "object", "properties": {"a": {"type": "integer"}, "ab": true}, "additionalProperties": ` +
			`{"type": "boolean"}}`,
			yes: []string{`{}`, `{"a": 1, "x": true}`, `{"aa": true}`, `{"": false}`, `{"abc": true, "d": false}`},
			no:  []string{`{"a": true}`, `{"x": 1}`, `{"\u0061": true}`}},
		{schema: `{"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": true, "required": ["z"]}`,
			yes: []string{`{"z": 5}`, `{"a": null, "z": 5, "q": []}`}, no: []string{`{}`, `{"a": null}`}},
		{schema: `{"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1, "maxProperties": 2}`,
			yes: []string{`{"a": 1}`, `{"a": 1, "b": 2}`}, no: []string{`{}`, `{"a": 1, "b": 2, "c": 3}`}},
		{schema: `{"type": "object", "properties": {"a": true, "b": true, "c": true}, "minProperties": 2, ` +
			`"additionalProperties": false}`, yes: []string{`{"a": 1, "c": 2}`, `{"a": 1, "b": 1, "c": 1}`},
			no: []string{`{"a": 1}`, `{}`}},
		{schema: `{"type": "object", "properties": {"a": true, "b": true, "c": true}, "maxProperties": 1}`,
			yes: []string{`{"c": 1}`, `{}`}, no: []string{`{"a": 1, "b": 1}`}},
		{schema: `{"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}, "additionalProperties": {"type": "integer"}}`,
			yes: []string{`{"ab": 1}`, `{}`}, no: []string{`{"A": 1}`, `{"": 1}`}},
		{schema: `{"type": "object", "properties": {"é\"": {"const": 1}}, "required": ["é\""]}`,
			yes: []string{`{"é\"": 1}`, `{"\u00e9\"": 1}`}, no: []string{`{"e": 1}`}},
		{schema: `{"type": "object", "properties": {"a": false, "b": {"type": "null"}}}`, yes: []string{`{"b": null}`, `{}`},
			no: []string{`{"a": 1}`}},
		{schema: `{"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 2}]}`, yes: []string{`1`, `"ab"`},
			no: []string{`"abc"`, `null`}},
		{schema: `{"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"], "anyOf": [{"properties": ` +
			`{"k": {"const": "x"}, "n": {"type": "integer"}}, "required": ["n"]}, {"properties": {"k": {"const": "y"}}}]}`,
			yes: []string{`{"k": "x", "n": 1}`, `{"k": "y"}`}, no: []string{`{"k": "x"}`, `{"k": "z"}`}},
		{schema: `{"oneOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}`, yes: []string{`1`, `"a"`, `null`},
			no: []string{`true`}},
		{schema: `{"oneOf": [{"type": "object", "properties": {"t": {"const": "a"}, "x": {"type": "integer"}}, "required": ` +
			`["t", "x"]}, {"type": "object", "properties": {"t": {"const": "b"}}, "required": ["t"]}]}`,
			yes: []string{`{"t": "a", "x": 1}`, `{"t": "b"}`}, no: []string{`{"t": "a"}`, `{"t": "c"}`}},
		{schema: `{"allOf": [{"type": "integer"}, {"minimum": 3}, {"maximum": 5}]}`, yes: []string{`3`, `5`},
			no: []string{`2`, `6`, `"a"`}},
		{schema: `{"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"properties": {"a": ` +
			`{"minimum": 5}, "b": {"type": "null"}}}], "type": "object"}`, yes: []string{`{"a": 5}`, `{"a": 6, "b": null}`},
			no: []string{`{"a": 4}`, `{}`}},
		{schema: `{"allOf": [{"properties": {"a": true}, "additionalProperties": false}, {"properties": {"b": true}}], ` +
			`"type": "object"}`, yes: []string{`{}`, `{"a": 1}`}, no: []string{`{"b": 1}`}},
		{schema: `{"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"}, ` +
			`"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["v", "next"], ` +
			`"additionalProperties": false}}}`,
			yes: []string{`{"v": 1, "next": null}`, `{"v": 1, "next": {"v": 2, "next": {"v": 3, "next": null}}}`},
			no:  []string{`{"v": 1}`, `{"v": 1, "next": {}}`}},
		{schema: `{"type": "array", "items": {"$ref": "#"}}`, yes: []string{`[]`, `[[], [[]]]`}, no: []string{`[1]`}},
		{schema: `{"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#", "minProperties": 1}}}}`,
			yes: []string{`{}`, `{"kids": [{"kids": []}]}`}, no: []string{`{"kids": [{}]}`}},
		{schema: `{"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"type": "null"}}}`, yes: []string{`null`},
			no: []string{`1`}},
		{schema: `{"$ref": "#x", "$defs": {"a": {"$anchor": "x", "type": "null"}}}`, yes: []string{`null`},
			no: []string{`1`}},
		{schema: `{"type": "object", "properties": {"a": {"$ref": "#/$defs/s"}, "b": {"$ref": "#/$defs/s"}}, "required": ` +
			`["a", "b"], "$defs": {"s": {"type": "string", "maxLength": 3}}}`, yes: []string{`{"a": "x", "b": "abc"}`},
			no: []string{`{"a": "x", "b": "abcd"}`}},
		{schema: `{"type": "object", "properties": {"a": true}, "unevaluatedProperties": false}`, yes: []string{`{"a": 1}`},
			no: []string{`{"b": 1}`}},
		{schema: `{"enum": [[1, "a"], [2], {"x": 1}, {"y": 1}], "prefixItems": [{"const": 1}], "required": ["x"]}`,
			yes: []string{`[1, "a"]`, `{"x": 1}`}, no: []string{`[2]`, `{"y": 1}`}},
	} {
		g, err := CompileSchema(context.Background(), []byte(c.schema))
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		s := validator(t, c.schema)
		for _, text := range c.yes {
			if !accepts(t, g, v, text) {
				t.Errorf("%s refuses %s", c.schema, text)
			}
			if err := validate(s, text); err != nil {
				t.Errorf("the validator refuses %s for %s: %v", text, c.schema, err)
			}
		}
		for _, text := range c.no {
			if accepts(t, g, v, text) {
				t.Errorf("%s accepts %s", c.schema, text)
			}
		}
		r := rand.New(rand.NewPCG(7, uint64(len(c.schema))))
		least := fewest(t, g, v)
		for i := range 30 {
			text := write(t, g, v, least+i, r)
			if err := validate(s, text); err != nil {
				t.Errorf("%s: wrote %s: %v", c.schema, text, err)
				break
			}
		}
		if t.Failed() && testing.Short() {
			break
		}
	}
}

// The tests' validator does not support these: OpenAPI's nullable, ECMA-262 escapes, draft 4's exclusive limits, items
// as a list.
func TestOtherDialects(t *testing.T) {
	for _, c := range []struct {
		schema  string
		yes, no []string
	}{
		{`{"type": "string", "nullable": true}`, []string{`null`, `"a"`}, []string{`1`}},
		{`{"type": "string", "pattern": "^[\\u00e0-\\u00ff\\/]+$"}`, []string{`"é"`, `"/"`}, []string{`"e"`}},
		{`{"type": "integer", "minimum": 1, "exclusiveMinimum": true, "maximum": 3, "exclusiveMaximum": false}`,
			[]string{`2`, `3`}, []string{`1`, `4`}},
		{`{"type": "array", "items": [{"type": "null"}], "additionalItems": {"type": "integer"}}`,
			[]string{`[null, 1]`, `[]`}, []string{`[1]`, `[null, null]`}},
	} {
		g, err := CompileSchema(context.Background(), []byte(c.schema))
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		for _, text := range c.yes {
			if !accepts(t, g, smallVocabulary(), text) {
				t.Errorf("%s refuses %s", c.schema, text)
			}
		}
		for _, text := range c.no {
			if accepts(t, g, smallVocabulary(), text) {
				t.Errorf("%s accepts %s", c.schema, text)
			}
		}
	}
}

// Unsupported keywords are refused by name and location.
func TestSchemaErrors(t *testing.T) {
	for _, c := range []struct {
		schema string
		kind   error
		says   string
	}{
		{`{"prefixItems": [{}, {"const": 1}], "minItems": 2, "uniqueItems": true}`, ErrUnsupported,
			"#: the keyword uniqueItems, for required items of few"},
		{`{"type": "object", "properties": {"a": {"not": {}}}, "required": ["a"]}`, ErrEmpty, "no value"},
		{`{"properties": {"a/b": {"items": {"not": {"unevaluatedItems": {}}}}}}`, ErrUnsupported,
			"#/properties/a~1b/items/not: the keyword unevaluatedItems"},
		{`{"not": {"uniqueItems": true}}`, ErrUnsupported, "uniqueItems"},
		{`{"type": "string", "not": {"pattern": ` + zodHost + `}}`, ErrLimit, "states"},
		{`{"type": "string", "pattern": "(?<=a)b"}`, ErrUnsupported, "look-behind"},
		{`{"type": "string", "pattern": "(a)\\1"}`, ErrUnsupported, "backreference"},
		{`{"type": "string", "pattern": "(?:(?!a).)*b"}`, ErrUnsupported, "look-ahead inside a repetition"},
		{`{"type": "string", "pattern": "a("}`, ErrInvalid, "a("},
		{`{"$ref": "other.json"}`, ErrUnsupported, "other.json"},
		{`{"$ref": "#/$defs/x"}`, ErrInvalid, "#/$defs/x"},
		{`{"type": "integer", "multipleOf": 123456}`, ErrUnsupported, "multipleOf"},
		{`{"type": "number", "multipleOf": 0.3333}`, ErrUnsupported, "multipleOf"},
		{`{"type": "object", "properties": {"a": {}}, "propertyNames": {"enum": ["a", "b", "c"]}, "minProperties": 3}`,
			ErrUnsupported, "minProperties"},
		{`{"type": "integer", "minimum": 5, "maximum": 4}`, ErrInvalid, "no value"},
		{`false`, ErrInvalid, "no value"},
		{`{"allOf": [{"type": "string"}, {"type": "null"}]}`, ErrInvalid, "no value"},
		{`{"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}`, ErrInvalid, "no finite text"},
		{`{"$ref": "#"}`, ErrInvalid, "no finite text"},
		{`{"allOf": [{"$ref": "#"}, {"type": "null"}]}`, nil, ""},
		{`{"type": "strin"}`, ErrInvalid, "strin"},
		{`{"type": "integer", "minimum": 1e999999999}`, ErrInvalid, "out of range"},
		{`{"minLength": -1}`, ErrInvalid, "-1"},
		{`{"a": 1, "a": 2}`, ErrInvalid, "twice"},
		{`[]`, ErrInvalid, "must be an object"},
		{`{`, ErrInvalid, "not JSON"},
		{`{} {}`, ErrInvalid, "unexpected data"},
		{strings.Repeat(`{"items": `, 300) + `true` + strings.Repeat(`}`, 300), ErrLimit, "levels"},
	} {
		_, err := CompileSchema(context.Background(), []byte(c.schema))
		if err == nil {
			t.Errorf("%.80s: no error", c.schema)
		} else if c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.80s: got %q, want %v with %q", c.schema, err, c.kind, c.says)
		}
	}
}

// Schemas that expand too far are refused quickly.
func TestSchemaLimits(t *testing.T) {
	var chain strings.Builder // each definition uses the next one twice
	chain.WriteString(`{"$ref": "#/$defs/d0", "$defs": {`)
	for i := range 40 {
		next := `{"type": "null"}`
		if i < 39 {
			n := string(rune('0'+(i+1)/10)) + string(rune('0'+(i+1)%10))
			next = `{"allOf": [{"$ref": "#/$defs/d` + strings.TrimPrefix(n, "0") + `"}, {"title": "x"}]}`
		}
		if i > 0 {
			chain.WriteString(", ")
		}
		n := strings.TrimPrefix(string(rune('0'+i/10))+string(rune('0'+i%10)), "0")
		chain.WriteString(`"d` + n + `": {"type": "array", "prefixItems": [` + next + `, ` + next + `], "items": false}`)
	}
	chain.WriteString(`}}`)
	if _, err := CompileSchema(context.Background(), []byte(chain.String())); err != nil {
		t.Errorf("shared definitions: %v", err)
	}
	any2 := `{"anyOf": [{"minLength": 1}, {"maxLength": 5}]}`
	wide := `{"allOf": [` + strings.TrimSuffix(strings.Repeat(any2+`, `, 40), ", ") + `]}`
	if _, err := CompileSchema(context.Background(), []byte(wide)); !errors.Is(err, ErrLimit) {
		t.Errorf("2^40 combinations: %v", err)
	}
	words := make([]string, 20000)
	for i := range words {
		words[i] = strings.Repeat(string(rune('a'+i%26)),
			i%7) + string(rune('a'+i/1000)) + string(rune('a'+i/50%20)) + string(rune('a'+i%50%26))
	}
	list, err := json.Marshal(map[string]any{"enum": words})
	if err != nil {
		t.Fatal(err)
	}
	if g, err := CompileSchema(context.Background(), list); err != nil {
		t.Errorf("20000 words: %v", err)
	} else if text, _ := json.Marshal(words[12345]); !accepts(t, g, smallVocabulary(), string(text)) {
		t.Errorf("20000 words: %s is refused", text)
	}
}
