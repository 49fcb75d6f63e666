package recipe

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/ingotml/ingot/quantize"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  Precision
		notes int
		bad   string
	}{
		{`{}`, Precision{}, 0, ""},
		{`{"quantize": "int4", "quantize_draft": "Q8", "uniform": true, "rules": [` +
			`{"match": "*.v_proj.weight", "type": "int8"}, {"match": "lm_head.weight", "type": "source"}]}`,
			Precision{Type: quantize.Int4, Draft: quantize.Int8, Uniform: true,
				Rules: []Rule{{"*.v_proj.weight", quantize.Int8}, {"lm_head.weight", 0}}}, 1, ""},
		{``, Precision{}, 0, "ends too early"},
		{`null`, Precision{}, 0, "null"},
		{`[]`, Precision{}, 0, "line 1"},
		{"{\n\"quantize\": int4}", Precision{}, 0, "line 2"},
		{`{"quantise": "int4"}`, Precision{}, 0, `unknown field "quantise"`},
		{`{"quantize": "int7"}`, Precision{}, 0, `quantize: unknown quantization type "int7"`},
		{`{"rules": [{"match": "[", "type": "int8"}]}`, Precision{}, 0, "rules[0]: pattern"},
		{`{"rules": [{"match": "a", "type": "int8"}, {"type": "int8"}]}`, Precision{}, 0, "rules[1]: the pattern is empty"},
		{`{"rules": [{"match": "a"}]}`, Precision{}, 0, "rules[0]: unknown quantization type"},
		{`{} {}`, Precision{}, 0, "more than one"},
	} {
		got, notes, err := Parse([]byte(c.text))
		if c.bad != "" {
			if !errors.Is(err, ErrRecipe) || !strings.Contains(err.Error(), c.bad) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: error %v, want %s", c.text, err, c.bad)
			}
			continue
		}
		if d := cmp.Diff(c.want, got); err != nil || d != "" || len(notes) != c.notes {
			t.Errorf("%s: %v, notes %q\n%s", c.text, err, notes, d)
		}
	}
}

func TestParseRule(t *testing.T) {
	for text, want := range map[string]Rule{
		"a=int4": {"a", quantize.Int4}, "*=SOURCE": {"*", 0}, "x=y=mxfp8": {"x=y", quantize.MXFP8},
	} {
		if got, _, err := ParseRule(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "=", "a", "a=", "=int4", "a=int9", "[=int4"} {
		if _, _, err := ParseRule(text); !errors.Is(err, ErrRecipe) {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"quantize": "int4", "uniform": true, "rules": [{"match": "*.v_proj.weight", "type": "int8-g32"}, ` +
		`{"match": "lm_head.*", "type": "source"}]}`))
	f.Add([]byte(`{"rules": [{"match": "[a-z]\\", "type": "q4"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, _, err := Parse(data)
		if err != nil {
			if !errors.Is(err, ErrRecipe) {
				t.Errorf("error %v", err)
			}
			return
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := Parse(text)
		if err != nil || !cmp.Equal(p, back, cmpopts.EquateEmpty()) {
			t.Errorf("%s: written as %s, which reads %+v, %v", data, text, back, err)
		}
	})
}

func FuzzParseRule(f *testing.F) {
	f.Add("*.down_proj.weight=int8")
	f.Add("[a-=mxfp4")
	f.Fuzz(func(t *testing.T, text string) {
		r, _, err := ParseRule(text)
		if err != nil {
			return
		}
		if back, _, err := ParseRule(r.String()); err != nil || back != r {
			t.Errorf("%q: written as %s, which reads %v, %v", text, r, back, err)
		}
	})
}
