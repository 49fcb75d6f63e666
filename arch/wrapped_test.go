package arch_test

import (
	"slices"
	"strings"
	"testing"
)

// The tensors of every checkpoint are found under the names that training programs give them, and the sources of a
// match are the checkpoint's own names.
func TestWrappedCheckpoints(t *testing.T) {
	for _, c := range checkpoints(t) {
		tb, have := c.detect(t).Table(), c.have(t)
		want, err := tb.Check(have)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		for what, wrap := range map[string]func(string) string{
			"compiled": func(n string) string { return "_orig_mod." + n },
			"parallel": func(n string) string { return "module." + n },
			"peft":     func(n string) string { return "base_model.model." + n },
			"both":     func(n string) string { return "module._orig_mod." + n },
			"layers":   func(n string) string { return strings.Replace(n, "layers.0.", "layers.0._orig_mod.", 1) },
		} {
			renamed := slices.Clone(have)
			names := map[string]bool{}
			for i := range renamed {
				renamed[i].Name = wrap(renamed[i].Name)
				names[renamed[i].Name] = true
			}
			got, err := tb.Check(renamed)
			if err != nil || len(got.Tensors) != len(want.Tensors) || len(got.Dropped) != len(want.Dropped) {
				t.Errorf("%s, %s: %d tensors and %d dropped, want %d and %d: %v", c.Name, what, len(got.Tensors),
					len(got.Dropped), len(want.Tensors), len(want.Dropped), err)
				continue
			}
			for _, m := range got.Tensors {
				for _, source := range m.Sources {
					if !names[source] {
						t.Fatalf("%s, %s: %s has the source %s, which the checkpoint lacks", c.Name, what, m.Spec.Name, source)
					}
				}
			}
		}
	}
}

// Two names that would become one stay apart: the second is unknown.
func TestWrappedTwice(t *testing.T) {
	tb, have := tab(t, "llama")
	again := have[0]
	again.Name = "module." + again.Name
	_, err := tb.Check(append(have, again))
	if err == nil || !strings.Contains(err.Error(), again.Name+": unknown") {
		t.Error(err)
	}
}

// Some files of Kimi K2.5 call layers blocks.
func TestSpellings(t *testing.T) {
	tb, have := tab(t, "deepseek_v3")
	renamed := slices.Clone(have)
	for i := range renamed {
		name := strings.Replace(renamed[i].Name, "model.layers.", "model.blocks.", 1)
		renamed[i].Name = "language_model." + name
	}
	want, err := tb.Check(have)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tb.Check(renamed)
	if err != nil || len(got.Tensors) != len(want.Tensors) ||
		!strings.HasPrefix(got.Tensors[1].Sources[0], "language_model.model.blocks.") {
		t.Errorf("%d tensors, want %d: %v", len(got.Tensors), len(want.Tensors), err)
	}
}
