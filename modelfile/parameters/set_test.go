package parameters

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The set has a member for each parameter that a Modelfile and a request can set. A value is the same whether JSON or
// a Modelfile sets it.
func TestSetHasEveryParameter(t *testing.T) {
	values := map[string]any{"num_gpu": 3, "use_mmap": true, "unknown": "x"}
	for _, p := range All() {
		switch {
		case !p.Request:
		case p.Type == Strings:
			values[p.Name] = []string{"a", "b"}
		default:
			values[p.Name] = json.Number("1")
			if new(Set).member(p.Name) == nil {
				t.Errorf("%s: the set has no member: see Set.member in set.go", p.Name)
			}
		}
	}
	got, err := Of(values)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	var want Set
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if all, err := json.Marshal(got); err != nil || len(fields(t, all)) != len(values)-3 {
		t.Errorf("%s, %v: want %d members", all, err, len(values)-3)
	}
}

func fields(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for name, v := range all {
		if v == nil {
			t.Errorf("%s is not set", name)
		}
	}
	return all
}

func TestValuesOfASet(t *testing.T) {
	got, err := Of(map[string]any{"seed": int64(1<<60 + 1), "top_k": 7, "temperature": 0.25, "stop": []any{"x"}})
	want := Set{Shared: Shared{Seed: new(int64(1<<60 + 1)), TopK: new(7), Temperature: new(0.25), Stop: Texts{"x"}}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Error(err, d)
	}
	for name, v := range map[string]any{"temperature": "hot", "top_k": 1.5, "seed": true, "stop": 5} {
		if _, err := Of(map[string]any{name: v}); err == nil {
			t.Errorf("%s = %v is accepted", name, v)
		}
	}
}

func TestStandard(t *testing.T) {
	for _, p := range All() {
		if p.Default != nil {
			if err := new(Set).put(p.Name, p.Default); err != nil {
				t.Errorf("the default of %s: %v", p.Name, err)
			}
		}
	}
	want := Set{
		Shared:        Shared{Temperature: new(0.8), TopK: new(40), TopP: new(0.9)},
		RepeatPenalty: new(1.0), RepeatLastN: new(64),
	}
	if d := cmp.Diff(want, Standard()); d != "" {
		t.Error(d)
	}
}
