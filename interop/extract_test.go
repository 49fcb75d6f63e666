package interop

import (
	"path/filepath"
	"reflect"
	"testing"
)

// TestExtracted: each client downloads an image. Its layers, written to their paths, are a checkpoint folder whose
// tensors equal the source's. transformers computes equal logits from both (long form).
func TestExtracted(t *testing.T) {
	host := startDistribution(t, "")
	for _, model := range []string{"llama-sharded", "llama-default", "qwen3-default"} {
		maker := newUser(t)
		name := host + "/" + model + ":v1"
		maker.create(name, model)
		maker.ingot("push", name)
		for _, c := range clients {
			u := newUser(t)
			layout := filepath.Join(u.home, "layout")
			c.download(u, name, layout)
			dir := extract(t, layout)
			want, got := tensors(t, checkpoint(t, model)), tensors(t, dir)
			if len(want) == 0 || !reflect.DeepEqual(got, want) {
				t.Errorf("%s by %s: the %d tensors differ from the %d of the source", model, c.name, len(got), len(want))
			}
			equal(t, model+" by "+c.name+": config.json", readFile(t, filepath.Join(dir, "config.json")),
				readFile(t, filepath.Join(checkpoint(t, model), "config.json")))
			if c.name == "skopeo" && !testing.Short() {
				transformers(t, checkpoint(t, model), dir)
			}
		}
	}
}

// transformers compares the logits of both folders with Hugging Face's loader, in the Python environment of
// testdata/gen.
func transformers(t *testing.T, pairs ...string) {
	t.Helper()
	python, err := filepath.Abs(filepath.Join("..", ".cache", "gen-venv", "bin", "python"))
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("same_scores.py")
	if err != nil {
		t.Fatal(err)
	}
	if out, errs, err := newUser(t).try("", python, append([]string{script}, pairs...)...); err != nil {
		t.Errorf("same_scores.py: %v (testdata/gen/setup.sh makes the environment)\n%s%s", err, out, errs)
	}
}
