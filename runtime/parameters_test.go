package runtime

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingotml/ingot/modelfile"
)

// Every parameter of requests can be set, and images have those of Modelfiles. num_ctx and num_keep depend on the
// prompt.
func TestEveryParameterIsSet(t *testing.T) {
	var settable []string
	for _, p := range requestParameters {
		settable = append(settable, p.name)
	}
	var want []string
	for _, p := range modelfile.RequestParameters() {
		if p.Name != "num_ctx" && p.Name != "num_keep" {
			want = append(want, p.Name)
		}
		if p.Default != nil {
			if err := new(Request).set(p.Name, p.Default); err != nil {
				t.Errorf("the default: %v", err)
			}
		}
		if p.Type == modelfile.Float {
			i := slices.Index(settable, p.Name)
			if i < 0 || requestParameters[i].number == nil {
				t.Errorf("%s is a number that is not checked to be finite: set it with number in parameters.go", p.Name)
			}
		}
	}
	slices.Sort(settable)
	slices.Sort(want)
	if d := cmp.Diff(want, settable); d != "" {
		t.Error(d)
	}
	missing := modelfile.Undeclared(modelfile.Ollama, []any{parameters{}}, "num_ctx", "draft", "ignore_eos", "logit_bias",
		"deadline_ms", "priority")
	if missing != nil {
		t.Errorf("parameters of images do not have %q: add members to parameters in defaults.go", missing)
	}
	v := reflect.New(reflect.TypeFor[parameters]()).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Pointer {
			f.Set(reflect.New(f.Type().Elem()))
		} else {
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		}
	}
	if err := v.Interface().(parameters).apply(&Defaults{}); err != nil {
		t.Error(err)
	}
}

func TestStandardDefaults(t *testing.T) {
	want := Defaults{Sampling: Sampling{Temperature: 0.8, TopK: 40, TopP: 0.9, RepeatPenalty: 1, RepeatLastN: 64}}
	if d := cmp.Diff(want, StandardDefaults()); d != "" {
		t.Error(d)
	}
}

func TestSetRequest(t *testing.T) {
	var r Request
	err := r.Set(modelfile.OpenAI, struct {
		Repeat *float64          `json:"repetition_penalty"`
		Seed   *int64            `json:"seed"`
		Bias   map[int32]float64 `json:"logit_bias"`
		EOS    bool              `json:"ignore_eos"`
		TopK   *int              `json:"top_k"`
	}{Repeat: new(1.5), Seed: new(int64(7)), Bias: map[int32]float64{3: 1}, EOS: true})
	want := Request{
		Sampling: Sampling{RepeatPenalty: 1.5, Seed: new(int64(7)), LogitBias: map[int32]float64{3: 1}}, IgnoreEOS: true,
	}
	if d := cmp.Diff(want, r); err != nil || d != "" {
		t.Error(err, d)
	}
	err = r.Set(modelfile.OpenAI, struct {
		Temperature string `json:"temperature"`
	}{"hot"})
	if !errors.Is(err, ErrSampling) {
		t.Errorf("a text as temperature: %v", err)
	}
}

// An image's draft depth applies unless the program has chosen one.
func TestDefaultDraft(t *testing.T) {
	fixed := Draft{Mode: DraftFixed, N: 7}
	for _, test := range []struct {
		image         string
		program, want Draft
	}{
		{`{"draft_num_predict": 3}`, Draft{}, Draft{Mode: DraftFixed, N: 3}},
		{`{"draft_num_predict": 99}`, Draft{}, Draft{Mode: DraftFixed, N: MaxDraft}},
		{`{"draft_num_predict": 0}`, Draft{}, Draft{Mode: DraftOff}},
		{`{"draft_num_predict": 3}`, fixed, fixed},
		{`{"num_keep": 3}`, Draft{}, Draft{}},
	} {
		var d Defaults
		if err := d.SetJSON([]byte(test.image)); err != nil {
			t.Fatal(err)
		}
		r := Request{Draft: test.program}
		if d.ApplyTo(&r); r.Draft != test.want {
			t.Errorf("%s over %+v: %+v, want %+v", test.image, test.program, r.Draft, test.want)
		}
	}
}
