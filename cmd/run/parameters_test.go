package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/modelfile/parameters"
)

// Run has every flag that the table of parameters names, and those of the language are parameters of requests.
func TestParameterFlags(t *testing.T) {
	f := runCommand(&cli.App{}).Flags()
	for _, p := range parameters.OfRequests() {
		if p.Flag.Name != "" && f.Lookup(p.Flag.Name) == nil {
			t.Errorf("run has no flag --%s", p.Flag.Name)
		}
	}
	if d := cmp.Diff(map[string]any{}, flagParameters(f)); d != "" {
		t.Error("without flags: ", d)
	}
	err := f.Parse([]string{"--temperature=0", "--top-k=2", "--top-p=0.3", "--min-p=0.4", "--seed=5", "--max-tokens=6",
		"--stop=a", "--stop=b", "--ignore-eos"})
	want := map[string]any{"temperature": 0.0, "top_k": 2, "top_p": 0.3, "min_p": 0.4, "seed": 5, "num_predict": 6,
		"stop": []string{"a", "b"}}
	if d := cmp.Diff(want, flagParameters(f)); err != nil || d != "" {
		t.Error(err, d)
	}
}
