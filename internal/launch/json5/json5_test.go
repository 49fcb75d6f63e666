package json5

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func read(t *testing.T, text string) *Document {
	t.Helper()
	d, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

func TestSet(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		path  string
		value any
		want  string
	}{
		"nothing":        {"", "a.b", 1, "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n"},
		"empty object":   {"{}", "a", "x", "{\n  \"a\": \"x\"\n}"},
		"other value":    {`{"a": 1, "b": 2}`, "a", 3, `{"a": 3, "b": 2}`},
		"same value":     {"{a: 'x' /* y */}", "a", "x", "{a: 'x' /* y */}"},
		"one line":       {`{"a": 1}`, "b", map[string]int{"c": 2}, `{"a": 1, "b": {"c":2}}`},
		"comment at end": {"{\n    a: 1 // one\n}\n", "b", 2, "{\n    a: 1, // one\n    \"b\": 2\n}\n"},
		"comma at end":   {"{\n  a: 1,\n  // more\n}\n", "b", 2, "{\n  a: 1,\n  // more\n  \"b\": 2,\n}\n"},
		"tabs": {"{\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}", "a.c", []int{1},
			"{\n\t\"a\": {\n\t\t\"b\": 1,\n\t\t\"c\": [\n\t\t  1\n\t\t]\n\t}\n}"},
		"nested": {"{\n  \"a\": {}\n}", "a.b.c", true,
			"{\n  \"a\": {\n    \"b\": {\n      \"c\": true\n    }\n  }\n}"},
		"only a comment":  {"{ // here\n}", "a", 1, "{ // here\n  \"a\": 1\n}"},
		"multiline value": {"{\n  \"a\": [1]\n}", "a", []string{"x"}, "{\n  \"a\": [\n    \"x\"\n  ]\n}"},
		"duplicate key":   {`{"a": 1, "a": 2}`, "a", 3, `{"a": 1, "a": 3}`},
		"HTML characters": {`{"a": 1}`, "a", "<&>", `{"a": "<&>"}`},
	} {
		t.Run(name, func(t *testing.T) {
			d := read(t, c.text)
			if err := d.Set(c.value, strings.Split(c.path, ".")...); err != nil {
				t.Fatal(err)
			}
			if got := string(d.Bytes()); got != c.want {
				t.Errorf("%s\nwant\n%s", got, c.want)
			}
			v, found := d.Get(strings.Split(c.path, ".")...)
			want, err := json.Marshal(c.value)
			got, _ := json.Marshal(v)
			if err != nil || !found || string(got) != string(want) {
				t.Errorf("got %s, %v; want %s, %v", got, found, want, err)
			}
			if err := d.Set(c.value, strings.Split(c.path, ".")...); err != nil || string(d.Bytes()) != c.want {
				t.Errorf("set again: %v, %s", err, d.Bytes())
			}
		})
	}
	if err := read(t, `{"a": [1]}`).Set(1, "a", "b"); !errors.Is(err, ErrShape) {
		t.Errorf("a member of an array: %v", err)
	}
}

func TestDelete(t *testing.T) {
	for _, c := range []struct{ text, keys, want string }{
		{`{"a": 1, "b": 2, "c": 3}`, "b", `{"a": 1, "c": 3}`},
		{`{"a": 1, "b": 2, "c": 3}`, "c", `{"a": 1, "b": 2}`},
		{`{"a": 1, "b": 2, "c": 3}`, "b c", `{"a": 1}`},
		{`{"a": 1, "b": 2, "c": 3}`, "a b c", `{}`},
		{`{"a": 1, "b": 2, "c": 3}`, "a", `{ "b": 2, "c": 3}`},
		{"{\n  \"a\": 1, // one\n  \"b\": 2\n}", "b", "{\n  \"a\": 1 // one\n}"},
		{`{"a": 1, "b": 2,}`, "b", `{"a": 1,}`},
		{`{"a": 1}`, "z", `{"a": 1}`},
	} {
		d := read(t, c.text)
		if err := d.Delete(nil, strings.Fields(c.keys)...); err != nil {
			t.Fatal(err)
		}
		if got := string(d.Bytes()); strings.TrimSpace(got) != c.want && got != c.want {
			t.Errorf("%s without %s: %s, want %s", c.text, c.keys, got, c.want)
		}
	}
}

// A batch gives the same text as its edits one by one.
func TestBatch(t *testing.T) {
	const text = `{"s": {"a": 1, "b": 2, "c": "x"}, "t": {"c": "x", "a": 1}}`
	change := func(d *Document) error {
		for _, s := range d.Keys() {
			if err := errors.Join(d.Set("y", s, "c"), d.Delete([]string{s}, "a", "b")); err != nil {
				return err
			}
		}
		return nil
	}
	one, all := read(t, text), read(t, text)
	if err := errors.Join(change(one), all.Batch(func() error { return change(all) })); err != nil {
		t.Fatal(err)
	}
	if got, want := string(all.Bytes()), string(one.Bytes()); got != want || !strings.Contains(got, `"t": {"c": "y"}`) {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestGet(t *testing.T) {
	const text = "// a user's comment\n{unquoted: 'single \\'quotes\\'', \"u\": \"\\u00e9\\ud83d\\ude00\\x41\\\n!\", " +
		"hex: 0x10, big: 12345678901234567890, list: [1, null, {a: true},], /* end */ }\n"
	d := read(t, text)
	got, _ := d.Get()
	want := map[string]any{
		"unquoted": "single 'quotes'", "u": "\u00e9\U0001f600A!", "hex": "0x10", "big": json.Number("12345678901234567890"),
		"list": []any{json.Number("1"), nil, map[string]any{"a": true}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%#v\nwant %#v", got, want)
	}
	if d.Text("unquoted") != "single 'quotes'" || d.Text("list") != "" || d.Text("a", "b") != "" {
		t.Error("Text differs from Get")
	}
	if string(d.Bytes()) != text {
		t.Errorf("the text changed: %s", d.Bytes())
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{":                          "missing key",
		"{\n\"a\" 1}":                "line 2: missing colon",
		`{"a": }`:                    "missing value",
		`{"a": 1 "b": 2}`:            "missing comma",
		`{"a": [1 2]}`:               "missing comma in an array",
		`{"a": "x`:                   "unterminated string",
		`{"a": "\u12"}`:              "invalid escape",
		`{"a": "\`:                   "unterminated string",
		"{} /* x":                    "unterminated comment",
		"{} {}":                      "after the value",
		"\xff":                       "not UTF-8",
		strings.Repeat(`{"a":`, 300): "nested more than",
		strings.Repeat(`[`, 100_000): "nested more than",
		`{"a": "\u1`:                 "incomplete escape",
	} {
		if _, err := Parse([]byte(text)); !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
	if _, err := Parse([]byte("[1]")); !errors.Is(err, ErrShape) {
		t.Errorf("an array: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "{}", "{a: 1, // x\n}", `{"a": {"b": [1, 'x', 0x1]}}`, "{ /* x */ }", `{"a":"\u00e9\
"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Parse(text)
		if err != nil {
			return
		}
		before, _ := d.Get()
		if err := d.Set("new value", "key of a fuzz test"); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if d.Text("key of a fuzz test") != "new value" {
			t.Fatalf("%q: %q lacks the new value", text, d.Bytes())
		}
		if err := d.Delete(nil, "key of a fuzz test"); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if after, _ := d.Get(); !reflect.DeepEqual(before, after) {
			t.Fatalf("%q became %q", text, d.Bytes())
		}
	})
}
