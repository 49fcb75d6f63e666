package convert

import (
	"errors"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
)

// A checkpoint that is read as another type keeps its own chat format, and has the vision of the type.
func TestAsKeepsTheChatFormat(t *testing.T) {
	c := tiny(t, tinyConfig, 1)
	c.files[source.ConfigName] = strings.NewReplacer(`"llama"`, `"nemotron_h"`, "LlamaForCausalLM",
		"NemotronHForCausalLM", `"tie_word`, `"image_token_id": 5, "head_dim": 8, "tie_word`).Replace(tinyConfig)
	c.files["chat_template.jinja"] = "{{ tools }}<think>{{ messages }}</think>"
	st := openStore(t)
	mustCreate(t, st, "x", from(c.write(t, t.TempDir())), Options{As: "llama"})
	img := mustResolve(t, st, "x").Image
	want := []string{manifest.CapCompletion, manifest.CapTools, manifest.CapThinking, manifest.CapVision}
	got := strings.Join(img.Config.Capabilities, " ")
	if got != strings.Join(want, " ") || img.Config.ModelType != "llama" {
		t.Errorf("capabilities %q, type %s", got, img.Config.ModelType)
	}
	if got := mustTexts(t, st, "x").Parser; got != "nemotron-3" {
		t.Errorf("parser %q", got)
	}
	again := mustCreate(t, st, "y", parsed(t, "FROM x"), Options{})
	if d := mustResolve(t, st, "x").Digest; again.Digest != d {
		t.Errorf("made from the image: %s, want %s", again.Digest, d)
	}
	mustCreate(t, st, "z", from(c.write(t, t.TempDir())), Options{As: "ministral3"}) // its images are text only
	if got := mustResolve(t, st, "z").Image.Config.Capabilities; strings.Contains(strings.Join(got, " "), "vision") {
		t.Errorf("capabilities %q", got)
	}
}

// The type that is asked for is the model's, not its draft's.
func TestAsIsNotTheDrafts(t *testing.T) {
	c := tiny(t, tinyConfig, 1)
	c.files[source.ConfigName] = strings.ReplaceAll(strings.ReplaceAll(tinyConfig, "Llama", "Strange"), "llama", "strange")
	dir, draft := c.write(t, t.TempDir()), tiny(t, tinyConfig, 2).write(t, t.TempDir())
	file := from(dir, modelfile.Command{Name: modelfile.Draft, Value: draft})
	plan, err := DryRun(t.Context(), func() (*store.Store, error) { return openStore(t), nil }, file, Options{As: "llama"})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(strings.Join(plan.Warnings, "\n"), "declares"); n != 1 {
		t.Errorf("warnings %q", plan.Warnings)
	}
	file = from(draft, modelfile.Command{Name: modelfile.Draft, Value: dir})
	_, err = DryRun(t.Context(), func() (*store.Store, error) { return openStore(t), nil }, file, Options{As: "llama"})
	if !errors.Is(err, arch.ErrUnknownArchitecture) {
		t.Errorf("a draft of an unknown type: %v", err)
	}
}

// Keys of config.json that its type does not read are a note, if they could count.
func TestUnreadKeysAreNoted(t *testing.T) {
	c := tiny(t, tinyConfig, 1)
	const more = `"logit_scale": 0.5, "use_cache": true, "tie_word`
	c.files[source.ConfigName] = strings.Replace(tinyConfig, `"tie_word`, more, 1)
	open := func() (*store.Store, error) { return openStore(t), nil }
	plan, err := DryRun(t.Context(), open, from(c.write(t, t.TempDir())), Options{})
	const want = "llama models do not read these keys of config.json, which are not known to be without influence: " +
		"logit_scale"
	if err != nil || plan.Warnings[0] != want {
		t.Errorf("%q, %v", plan.Warnings, err)
	}
}
