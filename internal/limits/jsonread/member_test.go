package jsonread

import "testing"

func TestMember(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`{"a": 1, "b": {"x": [1, "}"]}, "c": "\\ud800"}`, `{"x": [1, "}"]}`},
		{` { "b" : "\u00e9\"" } `, `"\u00e9\""`},
		{`{"b": 1, "b": null}`, "null"},
		{`{"a": {"b": 1}}`, ""},
		{`{}`, ""},
	} {
		got, err := Member([]byte(test.text), "b", Options{Nesting: 4, ReplaceSurrogates: true})
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %q, %v; want %q", test.text, got, err, test.want)
		}
	}
	for _, text := range []string{``, `[]`, `{"b": 1`, `{"b": 1} 2`, `{"b": 1, "a": [[[[[]]]]]}`, `{"b": 1, "a": tru}`} {
		if got, err := Member([]byte(text), "b", Options{Nesting: 4}); err == nil {
			t.Errorf("%q: %q without an error", text, got)
		}
	}
}
