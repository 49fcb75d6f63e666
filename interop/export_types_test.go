package interop

import (
	"path/filepath"
	"regexp"
	"testing"
)

// sourceless are checkpoints whose export is not compared, and why. The export of the type's other checkpoint, if it
// has one, shows the names.
var sourceless = map[string]string{
	"gpt_oss-published":  "its codes are exported as mlx-lm reads them",
	"llama4-published":   "transformers reads the text model under the prefix of the whole one",
	"mistral4-published": "transformers has no causal model of this type",
	"mistral4-saved":     "transformers has no causal model of this type",
}

// mixtures returns the model types of docs/models.md, which is made of the registry, that have experts: the first name
// of each row.
func mixtures(t *testing.T) (list []string) {
	t.Helper()
	page := readFile(t, filepath.Join("..", "docs", "models.md"))
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)`.*also for experts").FindAllStringSubmatch(page, -1) {
		list = append(list, m[1])
	}
	if len(list) < 25 {
		t.Fatalf("docs/models.md has %d model types with experts", len(list))
	}
	return list
}

// checkpointsOf returns checkpoints of a type: as published, as saved, or any.
func checkpointsOf(t *testing.T, modelType string) (list []string) {
	t.Helper()
	for _, kind := range []string{"-published", "-saved", "-default", "-*"} {
		found, err := filepath.Glob(checkpoint(t, modelType+kind))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 && (kind != "-*" || list == nil) {
			list = append(list, filepath.Base(found[0]))
		}
	}
	return list
}

// TestExportMixtures: transformers loads the export of every model type with experts, with the logits of the checkpoint
// that it was made of, bit by bit. This is the long form: setup.sh --full installs it.
func TestExportMixtures(t *testing.T) {
	if testing.Short() {
		t.Skip("needs transformers, which setup.sh installs with --full only")
	}
	u := newUser(t)
	var pairs []string
	for _, modelType := range mixtures(t) {
		compared := false
		for _, name := range checkpointsOf(t, modelType) {
			if _, ok := sourceless[name]; ok {
				compared = compared || modelType == "mistral4"
				continue
			}
			dir := filepath.Join(u.home, name)
			u.create(name, name)
			u.ingot("export", name, dir)
			pairs, compared = append(pairs, checkpoint(t, name), dir), true
		}
		if !compared {
			t.Errorf("no export of %s is compared", modelType)
		}
	}
	transformers(t, pairs...)
}
