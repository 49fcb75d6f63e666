package refs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compile(t *testing.T, text string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("http://example.com/schema.json", doc); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	s, err := c.Compile("http://example.com/schema.json")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

// For every keyword of any draft and many values, the schemas agree with those that json-schema.org publishes, which
// the validator has built in.
func TestAgainstPublished(t *testing.T) {
	values := []string{`null`, `true`, `false`, `0`, `-1`, `1.5`, `3`, `""`, `"a"`, `"#a"`, `"["`, `"http://a.b/c"`,
		`"string"`, `"a b"`, `[]`, `["a"]`, `["a", "a"]`, `["string"]`, `["string", "string"]`, `[1]`, `[{}]`, `[true]`,
		`[{"type": 1}]`, `{}`, `{"a": {}}`, `{"a": true}`, `{"a": 1}`, `{"a": ["b"]}`, `{"a": ["b", "b"]}`, `{"a": []}`,
		`{"type": 1}`, `{"type": "string"}`, `{"[": {}}`, `{"http://a.b/c": true}`, `{"a": {"type": 1}}`,
		`{"minLength": -1}`, `{"minLength": 1}`}
	names := map[string]bool{"exclusiveMinimum": true, "unknown": true}
	for _, e := range keywords {
		names[e.name] = true
	}
	for i := range drafts {
		d := &drafts[i]
		scheme, fragment := "http://", "#"
		if d.version >= 2019 {
			scheme, fragment = "https://", ""
		}
		published := compile(t, fmt.Sprintf(`{"$schema": %q, "allOf": [{"$ref": %[1]q}]}`, scheme+d.address+fragment))
		text := string(Metaschema(scheme + d.address))
		if !json.Valid([]byte(text)) {
			t.Fatalf("not JSON: %s", text)
		}
		text = strings.Replace(text, fmt.Sprintf("%s: %q", d.id, scheme+d.address+fragment),
			d.id+`: "http://example.com/schema.json"`, 1)
		made := compile(t, text)
		for name := range names {
			for _, value := range append(values, "") {
				source := value
				if value != "" {
					source = fmt.Sprintf(`{%q: %s}`, name, value)
				} else {
					source = fmt.Sprintf(`%q`, name)
				}
				v, err := jsonschema.UnmarshalJSON(strings.NewReader(source))
				if err != nil {
					t.Fatal(err)
				}
				stricter := d.version == 6 && name == "examples" // as in the copy of json-schema.org
				want, got := published.Validate(v), made.Validate(v)
				if (want == nil) != (got == nil) && !(stricter && want == nil) {
					t.Errorf("draft %d: %s: %v, published %v", d.version, source, got, want)
				}
			}
		}
	}
}

func TestMetaschema(t *testing.T) {
	const address = "https://json-schema.org/draft-0%d/schema"
	if Metaschema(fmt.Sprintf(address, 7)) == nil || Metaschema(fmt.Sprintf(address, 3)) != nil {
		t.Error("draft 7 is there, draft 3 is not")
	}
}
