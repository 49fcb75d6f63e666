package arch

import "testing"

func TestPlainJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": [0.0, Infinity]}`:                   `{"a": [0.0, {"__float__": "Infinity"}]}`,
		`{"Infinity": "an \" Infinity", "b": 1}`:   `{"Infinity": "an \" Infinity", "b": 1}`,
		`{"a": -Infinity}`:                         `{"a": -{"__float__": "Infinity"}}`, // which is rejected as JSON
		`{"a": {"__float__": "Infinity"}, "b": 2}`: `{"a": {"__float__": "Infinity"}, "b": 2}`,
	} {
		plain := PlainJSON([]byte(in))
		if string(plain) != want {
			t.Errorf("%s becomes %s, want %s", in, plain, want)
		}
		if back := WithInfinities(plain, []byte(in)); string(back) != in {
			t.Errorf("%s comes back as %s", in, back)
		}
	}
}
