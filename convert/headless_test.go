package convert

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/export"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/modelfile"
)

const modulesList = `[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
	{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
	{"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]`

// withoutHead removes a checkpoint's head, and the prefix of its names.
func withoutHead(c *checkpoint) *checkpoint {
	c.drop("lm_head.weight")
	for _, list := range c.tensors {
		for i := range list {
			list[i].Name = strings.TrimPrefix(list[i].Name, "model.")
		}
	}
	return c
}

// A checkpoint without an output head is an embedding model: by its tensors, as Qwen3-Embedding-8B is published, or by
// its class. A checkpoint with one generates text, whatever its class.
func TestHeadless(t *testing.T) {
	class := func(name string) string { return strings.Replace(tinyConfig, "LlamaForCausalLM", name, 1) }
	tied := func(config string) string {
		return strings.Replace(config, `"tie_word_embeddings": false`, `"tie_word_embeddings": true`, 1)
	}
	asMistral := strings.Replace(class("MistralModel"), `"llama"`, `"mistral"`, 1)
	for name, c := range map[string]struct {
		checkpoint *checkpoint
		modules    bool
		class      string
		can        []string
		notes      []string
	}{
		"by its tensors": {withoutHead(tiny(t, tinyConfig, 1)), true, "LlamaModel", []string{"embedding"},
			[]string{"the checkpoint has no output head, and tie_word_embeddings is false"}},
		"without modules": {withoutHead(tiny(t, tinyConfig, 1)), false, "LlamaModel", []string{"embedding"},
			[]string{"the checkpoint has no output head", "an embedding is the vector of the last token"}},
		"by its class": {withoutHead(tiny(t, class("LlamaModel"), 1)), true, "LlamaModel", []string{"embedding"},
			[]string{"LlamaModel has no output head"}},
		"tied": {withoutHead(tiny(t, tied(class("LlamaModel")), 1)), true, "LlamaModel", []string{"embedding"},
			[]string{"LlamaModel has no output head"}},
		"mistral": {withoutHead(tiny(t, asMistral, 1)), false, "MistralModel", []string{"embedding"},
			[]string{"MistralModel has no output head", "an embedding is the vector of the last token"}},
		"with a head": {func() *checkpoint {
			c := tiny(t, tinyConfig, 1)
			c.files["config.json"] = class("LlamaModel")
			return c
		}(),
			false, "LlamaForCausalLM", []string{"completion"},
			[]string{"LlamaModel, but the checkpoint has an output head: it is imported as LlamaForCausalLM"}},
		"a head, and modules": {tiny(t, tinyConfig, 1), true, "LlamaForCausalLM", []string{"completion", "embedding"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if c.modules {
				c.checkpoint.files["modules.json"] = modulesList
				c.checkpoint.files["config_sentence_transformers.json"] = `{"prompts": {"query": "Query: "}}`
			}
			dir := c.checkpoint.write(t, t.TempDir())
			if c.modules {
				if err := os.Mkdir(filepath.Join(dir, "1_Pooling"), 0o755); err != nil {
					t.Fatal(err)
				}
				writeFile(t, filepath.Join(dir, "1_Pooling", "config.json"), []byte(`{"pooling_mode_lasttoken": true}`))
			}
			store := openStore(t)
			r := mustCreate(t, store, "x", from(dir), Options{})
			img := mustResolve(t, store, "x").Image
			if img.Config.Architecture != c.class || !slices.Equal(img.Config.Capabilities, c.can) {
				t.Errorf("class %s, capabilities %v", img.Config.Architecture, img.Config.Capabilities)
			}
			notes := slices.DeleteFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "tokenizer") })
			if len(notes) != len(c.notes) {
				t.Errorf("notes %q, want %q", notes, c.notes)
			}
			for i, want := range c.notes[:min(len(notes), len(c.notes))] {
				if !strings.Contains(notes[i], want) {
					t.Errorf("note %q, want %q", notes[i], want)
				}
			}
			var config struct{ Architectures []string }
			text := readLayer(t, store, img, manifest.KindFile, "config.json")
			err := json.Unmarshal([]byte(text), &config)
			if err != nil || !slices.Equal(config.Architectures, []string{c.class}) {
				t.Errorf("config.json declares %v, %v", config.Architectures, err)
			}
			// The image, its export and what is made from it are the same model.
			out := filepath.Join(t.TempDir(), "out")
			if _, err := export.Folder(t.Context(), store, mustResolve(t, store, "x"), out, export.Options{}); err != nil {
				t.Fatal(err)
			}
			for _, again := range []string{out, "x"} {
				mustCreate(t, store, "y", from(again), Options{})
				if got := mustResolve(t, store, "y").Image.Config; got.Architecture != c.class ||
					!slices.Equal(got.Capabilities, c.can) {
					t.Errorf("from %s: %+v", again, got)
				}
			}
		})
	}
}

// A checkpoint that lacks more than its head is damaged, and what has another head is no embedding model. A draft must
// have a head.
func TestHeadlessRefused(t *testing.T) {
	incomplete := withoutHead(tiny(t, tinyConfig, 1))
	incomplete.drop("norm.weight")
	both := strings.Replace(tinyConfig, `"tie_word`, `"is_causal": false, "tie_word`, 1)
	score := withoutHead(tiny(t, tinyConfig, 1))
	score.edit("norm.weight", func(x *tensor) { score.add("model.safetensors", tensor{x.Tensor, x.data}) })
	last := score.tensors["model.safetensors"]
	last[len(last)-1].Name = "score.weight"
	classifier := withoutHead(tiny(t, tinyConfig, 1))
	classifier.files["config.json"] = strings.Replace(tinyConfig, "ForCausalLM", "ForSequenceClassification", 1)
	bidirectional := withoutHead(tiny(t, tinyConfig, 1))
	bidirectional.files["config.json"] = both
	for want, c := range map[string]*checkpoint{
		"tensor norm.weight: absent":                incomplete,
		"is_causal = false":                         bidirectional,
		"tensor score.weight: unknown":              score,
		"a head that classifies or scores texts is": classifier,
	} {
		_, err := Create(t.Context(), openStore(t), modelName(t, "x"), from(c.write(t, t.TempDir())), Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	draft := withoutHead(tiny(t, tinyConfig, 2)).write(t, t.TempDir())
	_, err := Create(t.Context(), openStore(t), modelName(t, "x"), from(tiny(t, tinyConfig, 1).write(t, t.TempDir()),
		modelfile.Command{Name: modelfile.Draft, Value: draft}), Options{})
	if err == nil || !strings.Contains(err.Error(), "has no output head") {
		t.Errorf("a draft: %v", err)
	}
}
