package pyjson

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": [0.0, Infinity]}`:                   `{"a": [0.0, {"__float__": "Infinity"}]}`,
		`{"a": -Infinity, "b": NaN, "c": -1}`:      `{"a": {"__float__": "-Infinity"}, "b": {"__float__": "NaN"}, "c": -1}`,
		`[NaN,NaN,-Infinity]`:                      `[{"__float__": "NaN"},{"__float__": "NaN"},{"__float__": "-Infinity"}]`,
		`{"Infinity": "an \" Infinity", "b": 1}`:   `{"Infinity": "an \" Infinity", "b": 1}`,
		`{"NaN": "\\", "b": NaN}`:                  `{"NaN": "\\", "b": {"__float__": "NaN"}}`,
		`{"a": {"__float__": "Infinity"}, "b": 2}`: `{"a": {"__float__": "Infinity"}, "b": 2}`,
		`{"a": -NaN}`:                              `{"a": -{"__float__": "NaN"}}`, // Python has no such word either
		`"NaN`:                                     `"NaN`,
		`"NaN\`:                                    `"NaN\`,
		``:                                         ``,
	} {
		plain := Plain([]byte(in))
		if string(plain) != want {
			t.Errorf("%s becomes %s, want %s", in, plain, want)
		}
		if back := AsWritten(plain, []byte(in)); string(back) != in {
			t.Errorf("%s comes back as %s", in, back)
		}
	}
}

// Messages have JSON's words, never those of this program.
func TestWords(t *testing.T) {
	type inner struct {
		Bits int      `json:"bits"`
		List []string `json:"list"`
		On   bool
	}
	type file struct {
		Name  string           `json:"name"`
		Scale float32          `json:"scale"`
		Map   map[string]int32 `json:"map"`
		Inner *inner           `json:"inner"`
		Many  []inner          `json:"many"`
		Num   json.Number      `json:"num"`
	}
	for text, want := range map[string]string{
		`[]`:                       "a JSON array, want an object",
		`5`:                        "a JSON number, want an object",
		`"x"`:                      "a JSON string, want an object",
		`true`:                     "a JSON bool, want an object",
		``:                         "the JSON ends too early",
		"{\"a\":\n\n":              "the JSON ends too early",
		"{\n\"a\": 1,\n}":          "line 3: invalid character '}'",
		`{"name": 5}`:              "name: a JSON number, want a string",
		`{"scale": "x"}`:           "scale: a JSON string, want a number",
		`{"scale": NaN}`:           "scale: a JSON object, want a number",
		`{"map": [1]}`:             "map: a JSON array, want an object",
		`{"map": {"a": "x"}}`:      "map: a JSON string, want an integer",
		`{"map": {"a": 1.5}}`:      "map: a JSON number 1.5, want an integer",
		`{"inner": 7}`:             "inner: a JSON number, want an object",
		`{"inner": {"bits": "4"}}`: "inner.bits: a JSON string, want an integer",
		`{"inner": {"list": "a"}}`: "inner.list: a JSON string, want an array",
		`{"inner": {"On": 1}}`:     "inner.On: a JSON number, want true or false",
		`{"many": {"bits": 1}}`:    "many: a JSON object, want an array",
		`{"num": [1]}`:             "num: a JSON array, want a number",
		`{"inner": {"bits": 99999999999999999999}}`: "inner.bits: a JSON number 99999999999999999999, want an integer",
	} {
		var f file
		err := Unmarshal([]byte(text), &f)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for text, ok := range map[string]bool{`{"a": [NaN, -Infinity, Infinity]}`: true, `nan`: false, `{"a": nan}`: false,
		`{"a": Inf}`: false, "version https://git-lfs": false, `{} {}`: false} {
		if err := Check([]byte(text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A struct that another embeds has no name in JSON.
func TestEmbedded(t *testing.T) {
	type Inner struct {
		Bits int `json:"bits"`
	}
	type Outer struct{ Inner }
	var v struct {
		Outer
		Own Inner `json:"own"`
	}
	for in, want := range map[string]string{
		`{"bits": "x"}`:          "bits: a JSON string, want an integer",
		`{"own": {"bits": "x"}}`: "own.bits: a JSON string, want an integer",
	} {
		if err := Unmarshal([]byte(in), &v); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
}
