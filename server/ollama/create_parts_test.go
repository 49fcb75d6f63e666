package ollama

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/server/servertest"
	"github.com/opencontainers/go-digest"
)

// An adapter and a draft model that are uploaded give the image that `ingot create` makes of their folders.
func TestCreateFromParts(t *testing.T) {
	f := serve(t, nil)
	testdata := filepath.Join(servertest.Root(t), "testdata")
	model, adapter := filepath.Join(testdata, "models", "llama-f32"), filepath.Join(testdata, "adapters", "linear")
	draft := t.TempDir()
	if err := os.CopyFS(draft, os.DirFS(model)); err != nil {
		t.Fatal(err)
	}
	files := f.upload(t, "llama-f32")
	merged := f.uploadFolder(t, "adapters/linear", "merged.safetensors")
	f.Has(t, "POST", "/api/create", `{"model":"base","stream":false,"files":`+files+`}`, 200)
	adapted := modelfile.Command{Name: modelfile.Adapter, Value: adapter}
	drafted := modelfile.Command{Name: modelfile.Draft, Value: draft}
	for _, test := range []struct {
		body      string
		lines     []modelfile.Command
		precision recipe.Precision
	}{
		{`"files":` + files + `,"adapters":` + merged, []modelfile.Command{adapted}, recipe.Precision{}},
		{`"from":"base","adapters":` + merged, []modelfile.Command{adapted}, recipe.Precision{}},
		{`"from":"BASE:Latest","adapters":` + merged + `,"quantize":"int8"`, []modelfile.Command{adapted},
			recipe.Precision{Type: quantize.Int8}},
		{`"files":` + files + `,"draft_files":` + files, []modelfile.Command{drafted}, recipe.Precision{}},
		{`"from":"base","draft_files":` + files, []modelfile.Command{drafted}, recipe.Precision{}},
		{`"from":"base","draft_files":` + files + `,"draft_quantize":"int4"`, []modelfile.Command{drafted},
			recipe.Precision{Draft: quantize.Int4}},
		{`"from":"base","adapters":` + merged + `,"draft_files":` + files + `,"quantize":"int8","draft_quantize":"int4"`,
			[]modelfile.Command{adapted, drafted}, recipe.Precision{Type: quantize.Int8, Draft: quantize.Int4}},
	} {
		file := &modelfile.File{Commands: append([]modelfile.Command{{Name: modelfile.From, Value: model}}, test.lines...)}
		name, err := f.Name("wanted")
		if err != nil {
			t.Fatal(err)
		}
		want, err := convert.Create(t.Context(), f.Options().Store, name, file, convert.Options{Precision: test.precision})
		if err != nil {
			t.Fatal(err)
		}
		f.Has(t, "POST", "/api/create", `{"model":"made","stream":false,`+test.body+`}`, 200, `{"status":"success"}`)
		f.Has(t, "POST", "/api/show", `{"model":"made"}`, 200, want.Digest.String())
	}

	one := func(name, text string) string {
		d := digest.FromString(text).String()
		f.Has(t, "POST", "/api/blobs/"+d, text, 201)
		return `{"` + name + `":"` + d + `"}`
	}
	gguf := one("lora.gguf", "GGUF\x03\x00\x00\x00"+strings.Repeat("\x00", 64))
	for body, want := range map[string]string{
		`"from":"base","adapters":` + gguf:                                            `adapters: \"lora.gguf\" is in GGUF`,
		`"from":"base","adapters":` + one("notes.txt", "no"):                          "no adapter_config.json",
		`"from":"plain","adapters":` + merged:                                         "adapter",
		`"from":"base","draft_files":` + one("config.json", "[1]"):                    "config.json",
		`"from":"base","draft_quantize":"int4"`:                                       "draft",
		`"from":"base","adapters":{"a":"` + digest.FromString("none").String() + `"}`: "POST /api/blobs/DIGEST",
	} {
		status, text := f.Ask(t, "POST", "/api/create", `{"model":"x","stream":false,`+body+`}`)
		if status != 400 || !strings.Contains(text, want) || strings.Contains(text, f.Options().Store.Root()) {
			t.Errorf("%s: %d: %s\nwant %s", body, status, text, want)
		}
	}
	if got := f.left(t, "files-*"); len(got) > 0 {
		t.Errorf("remaining files: %v", got)
	}
}
