package jsonfit

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingotml/ingot/internal/limits"
)

// request has a field of each kind that requests have.
type request struct {
	Model    string            `json:"model"`
	Seed     *int64            `json:"seed"`
	TopK     int               `json:"top_k"`
	Small    uint8             `json:"small"`
	P        *float64          `json:"p"`
	On       bool              `json:"on"`
	Bias     map[int32]float64 `json:"bias"`
	Counts   map[string]int    `json:"counts"`
	Messages []turn            `json:"messages"`
	Deep     [][]int           `json:"deep"`
	Tools    json.RawMessage   `json:"tools"`
	Any      any               `json:"any"`
	Number   json.Number       `json:"number"`
	Data     []byte            `json:"data"`
	Texts    texts             `json:"texts"`
	TextsPtr *texts            `json:"texts_ptr"`
	Pair     [2]int            `json:"pair"`
	Plain    int
	Hidden   int `json:"-"`
	nested
	*Pointed
}

type nested struct {
	Inner int    `json:"inner"`
	Model string `json:"model"` // hidden by the outer field
}

type Pointed struct {
	Far int `json:"far"`
}

type turn struct {
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

type part struct {
	N    int   `json:"n"`
	Text texts `json:"text"`
}

// texts is a type that decodes itself.
type texts []string

func (t *texts) UnmarshalJSON(b []byte) error {
	var one *string
	if Unmarshal(b, &one) == nil {
		if *t = nil; one != nil {
			*t = texts{*one}
		}
		return nil
	}
	if b[0] != '[' {
		return Wrong(b, "a string or an array of strings")
	}
	return Unmarshal(b, (*[]string)(t))
}

// TestLikeEncodingJSON checks that what encoding/json accepts is decoded alike.
func TestLikeEncodingJSON(t *testing.T) {
	for _, text := range []string{
		`{}`, `null`, ` {"model" : "é\n\ud83d\ude00\ud800"} `, `{"MODEL":"a","Seed":5,"PLAIN":3,"Hidden":9,"Inner":-1}`,
		`{"seed":null,"top_k":null,"model":null,"bias":null,"messages":null,"texts":null,"texts_ptr":null,"any":null}`,
		`{"bias":{"5":1,"-7":2e3},"counts":{"a":1,"b":2},"counts":{"c":3}}`,
		`{"messages":[{"role":"user","parts":[{"n":1,"text":"x"},{"text":["y","z"]}]},{}],"deep":[[1],[],null,[2,3]]}`,
		`{"tools":[{"type" : "integer","maximum":5.0,"x":1e400}],"any":{"a":[1,2.5,"x",null,true]},"number":5.0}`,
		`{"data":"aGVsbG8=","pair":[1,2,3],"far":4,"small":255,"p":1e-3,"on":true,"unknown":{"model":[1]}}`,
		`{"texts":[],"messages":[],"deep":[],"texts_ptr":"a"}`, "{\"model\":\"a\xffb\"}", `{"ſeed":7,"top_\u004b":1}`,
	} {
		var want, got request
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		err := Unmarshal([]byte(text), &got)
		if d := cmp.Diff(want, got, cmp.AllowUnexported(request{})); err != nil || d != "" {
			t.Errorf("%s: %v\n%s", text, err, d)
		}
	}
}

// TestNumbers checks that whole numbers in any notation fit integers, and no other numbers do.
func TestNumbers(t *testing.T) {
	for number, want := range map[string]int64{
		"5.0": 5, "-5.000": -5, "1e3": 1000, "1E+3": 1000, "1.5e1": 15, "1500e-2": 15, "0e99999999999999999999": 0,
		"-0.0": 0, "0.000e-5": 0, "9223372036854775807": 1<<63 - 1, "9223372036854775807.0": 1<<63 - 1,
		"-9223372036854775808": -1 << 63, "-9.223372036854775808e18": -1 << 63, "4503599627370497.0": 1<<52 + 1,
		"9007199254740993.0": 1<<53 + 1, "100000000000000000000e-2": 1e18,
	} {
		for _, text := range []string{
			`{"seed":` + number + `}`, `{"messages":[{"parts":[{"n":` + number + `}]}]}`, `{"deep":[[` + number + `]]}`,
			`{"counts":{"x":` + number + `}}`, `{"inner":` + number + `,"far":` + number + `}`,
		} {
			var r request
			if err := Unmarshal([]byte(text), &r); err != nil || !strings.Contains(fmt.Sprintf("%+v %v", r, deref(r)),
				fmt.Sprint(want)) {
				t.Errorf("%s: %+v, %v", text, r, err)
			}
		}
	}
	for _, number := range []string{"5.5", "-0.1", "1e-1", "1e19", "9223372036854775808", "1e99999999999999999999",
		"-9223372036854775809.0", "1e400", "1.00000000000000000001", "10.5e0", "1e-99999999999999999999"} {
		var r request
		err := Unmarshal([]byte(`{"seed":`+number+`}`), &r)
		if err == nil || !strings.HasPrefix(err.Error(), "seed: a JSON number "+number+", want an integer") {
			t.Errorf("%s: %v, %v", number, r.Seed, err)
		}
	}
	var r request
	if err := Unmarshal([]byte(`{"bias":{"5.0":1},"tools":{"a":5.0,"b":[1e2]},"any":5.0}`), &r); err != nil {
		t.Fatal(err)
	}
	if r.Bias[5] != 1 || string(r.Tools) != `{"a":5.0,"b":[1e2]}` || r.Any != 5.0 {
		t.Errorf("%+v", r)
	}
	for _, word := range []string{"", "-", "x", "5x", "1e", "1ex", "0x10", "--5", "+5", " 5", "1.2.3", "Infinity"} {
		if whole, ok := Whole(word); ok {
			t.Errorf("%q is %s", word, whole)
		}
	}
}

func deref(r request) string {
	if r.Seed != nil {
		return fmt.Sprint(*r.Seed)
	}
	if r.Pointed != nil {
		return fmt.Sprint(*r.Pointed)
	}
	return ""
}

// TestErrors checks that a message has the path as the client wrote it, and JSON's words.
func TestErrors(t *testing.T) {
	long := strings.Repeat("9", 500)
	for text, want := range map[string]string{
		`[]`:                             "a JSON array, want an object",
		`"x"`:                            "a JSON string, want an object",
		`{"model":5}`:                    "model: a JSON number 5, want a string",
		`{"MODEL":5}`:                    "MODEL: a JSON number 5, want a string",
		`{"model":true}`:                 "model: a JSON boolean, want a string",
		`{"top_k":"5"}`:                  "top_k: a JSON string, want an integer",
		`{"top_k":5.5}`:                  "top_k: a JSON number 5.5, want an integer",
		`{"top_k":[]}`:                   "top_k: a JSON array, want an integer",
		`{"small":-1.0}`:                 "small: a JSON number -1.0, want an integer of at least 0 and at most 8 bits",
		`{"small":256}`:                  "small: a JSON number 256, want an integer of at least 0 and at most 8 bits",
		`{"top_k":` + long + `}`:         "top_k: a JSON number " + long[:60] + "..., want an integer of at most 64 bits",
		`{"p":"1"}`:                      "p: a JSON string, want a number",
		`{"p":1e999}`:                    "p: a JSON number 1e999, want a number",
		`{"on":"true"}`:                  "on: a JSON string, want true or false",
		`{"bias":{"x":1}}`:               `bias: the key "x" is not an integer`,
		`{"bias":{"5":"1"}}`:             "bias.5: a JSON string, want a number",
		`{"bias":[1]}`:                   "bias: a JSON array, want an object",
		`{"messages":{}}`:                "messages: a JSON object, want an array",
		`{"messages":[{},{"role":[1]}]}`: "messages[1].role: a JSON array, want a string",
		`{"messages":[{"parts":[{},{"text":["a",5]}]}]}`: "messages[0].parts[1].text[1]: a JSON number 5, want a string",
		`{"texts":{"a":1}}`:                  "texts: a JSON object, want a string or an array of strings",
		`{"deep":[[1],[2,"x"]]}`:             "deep[1][1]: a JSON string, want an integer",
		`{"data":"*"}`:                       "data: a JSON string, want an array",
		`{"pair":"x"}`:                       "pair: a JSON string, want an array",
		`{"a":1,}`:                           `invalid JSON in line 1: unexpected character '}'`,
		"{\"a\":\n\n[1 2]}":                  `invalid JSON in line 3: unexpected character '2'`,
		`{"model":`:                          "the JSON ends too early",
		`{"model":"a`:                        "the JSON ends too early",
		``:                                   "the JSON ends too early",
		`{"model":tru}`:                      `invalid JSON in line 1: unexpected character 't'`,
		`{"top_k":1.}`:                       `invalid JSON in line 1: unexpected character '}'`,
		`{} {}`:                              `invalid JSON in line 1: unexpected character '{'`,
		`{"texts":[1,}`:                      `invalid JSON in line 1: unexpected character '}'`,
		"{\"model\":\"\n\"}":                 `invalid JSON in line 1: control character in a string`,
		`{"counts":{"a\nb` + long + `":""}}`: "counts.a b" + long[:57] + "...: a JSON string, want an integer",
	} {
		var r request
		err := Unmarshal([]byte(text), &r)
		if err == nil || err.Error() != want {
			t.Errorf("%.80s: %v\nwant %s", text, err, want)
		}
	}
	var e *Error
	var r request
	if err := Unmarshal([]byte(`{"messages":[{"parts":[5]}]}`), &r); !errors.As(err, &e) ||
		e.With(e.Path.Dotted()) != "messages.0.parts.0: a JSON number 5, want an object" {
		t.Errorf("%v", err)
	}
}

// failing is a type whose method fails with an error of another package.
type failing struct{}

func (f *failing) UnmarshalJSON(b []byte) error {
	var n struct {
		N map[string]int `json:"n"`
	}
	if err := json.Unmarshal(b, &n); err != nil {
		return fmt.Errorf("not counts: %w", err)
	}
	errs := []error{nil, errors.New("format: unknown"), errors.New("formats differ"), In(Errorf("bad"), "list", 2)}
	return errs[n.N["e"]]
}

// TestForeignErrors checks that errors of a type's own method get the path, once, and lose Go's words.
func TestForeignErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":[{"format":{"n":{"e":1}}}]}`:  "a[0]: format: unknown",
		`{"a":[{"format":{"n":{"e":2}}}]}`:  "a[0].format: formats differ",
		`{"a":[{"format":{"n":{"e":3}}}]}`:  "a[0].format.list[2]: bad",
		`{"a":[{"format":{"n":{"e":""}}}]}`: "a[0].format: not counts: n: a JSON string, want an integer",
	} {
		var v struct {
			A []struct {
				Format failing `json:"format"`
			} `json:"a"`
		}
		if err := Unmarshal([]byte(text), &v); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if In(nil, "a", 1) != nil {
		t.Error("no error is an error")
	}
}

// TestNesting reaches the bound of nesting, in fields that are decoded and in those that are ignored.
func TestNesting(t *testing.T) {
	for _, field := range []string{"any", "unknown"} {
		for extra, ok := range map[int]bool{-1: true, 0: false} {
			n := limits.RequestNesting + extra
			text := `{"` + field + `":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
			var r request
			err := Unmarshal([]byte(text), &r)
			if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "more than 10000 deep") {
				t.Errorf("%s, %d: %.200v", field, n, err)
			}
		}
	}
}

// FuzzUnmarshal checks that texts are accepted as encoding/json accepts them, apart from numbers, and that messages
// have no words of Go.
func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{
		`{"model":"a","seed":5.0,"bias":{"1":2},"messages":[{"parts":[{"n":1,"text":["x"]}]}],"tools":[1.0]}`,
		`{"texts":5,"deep":[[1e2]],"any":{},"data":"YQ==","pair":[1],"far":0.5,"number":"x","on":false}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want, got request
		err := Unmarshal(text, &got)
		if err != nil {
			for _, word := range []string{"Go ", "struct", "json:", "jsonfit", "cannot unmarshal"} {
				if strings.Contains(err.Error(), word) && !strings.Contains(string(text), word) {
					t.Fatalf("%s: %v", text, err)
				}
			}
		}
		switch plain := json.Unmarshal(text, &want); {
		case plain == nil && err != nil:
			t.Fatalf("%s: %v", text, err)
		case plain != nil && err == nil && json.Valid(text) && !strings.ContainsAny(string(text), ".eE"):
			t.Fatalf("%s: encoding/json says %v", text, plain)
		case plain == nil && strings.Count(string(text), `"messages"`) < 2 && !reflect.DeepEqual(want, got) &&
			strings.ToValidUTF8(string(text), "") == string(text):
			t.Fatalf("%s:\n%s", text, cmp.Diff(want, got, cmp.AllowUnexported(request{})))
		}
	})
}
