package processor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runtimetest"
	"github.com/ingotml/ingot/tokenizer"
)

// A text that is cut keeps the tokens that the tokenizer adds around it: for BERT, one before and one after it.
func TestEncodeWithin(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "tokenizers", "bert", "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Processor{tok: tok}
	const text = "Once upon a time there was a small lamp."
	whole, err := p.Encode(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	n := len(whole)
	for limit, want := range map[int][]int32{
		1: whole[:1], 2: {whole[0], whole[n-1]}, 5: slices.Concat(whole[:4], whole[n-1:]),
		n - 1: slices.Concat(whole[:n-2], whole[n-1:]), n: whole, n + 1: whole,
	} {
		ids, cut, err := p.EncodeWithin(t.Context(), text, limit)
		if err != nil || !slices.Equal(ids, want) || cut != (limit < n) {
			t.Errorf("within %d: %v, %v, %v; want %v of %v", limit, ids, cut, err, want, whole)
		}
	}
}

func TestShowPictures(t *testing.T) {
	processor, err := Open(converttest.Pack(t, "qwen3_5-vision"))
	if err != nil {
		t.Fatal(err)
	}
	const p = "<|vision_start|><|image_pad|><|vision_end|>"
	a, b := runtime.Picture{ID: 0, Data: []byte("a")}, runtime.Picture{ID: 7, Data: []byte("b")}
	for _, test := range []struct {
		text     string
		pictures []runtime.Picture
		want     string
		order    string
	}{
		{"see [img-0]", nil, "see [img-0]", ""},
		{"see", []runtime.Picture{a}, p + "see", "a"},
		{"[img-7] and [img-0], [img-7]", []runtime.Picture{a, b}, p + " and " + p + ", " + p, "bab"},
		{"see [img-7]", []runtime.Picture{a, b}, p + "see " + p, "ab"},
	} {
		text, order, err := processor.ShowPictures(test.text, test.pictures)
		var got string
		for _, o := range order {
			got += string(o.Data)
		}
		if err != nil || text != test.want || got != test.order {
			t.Errorf("%q: %q with %s, %v; want %q with %s", test.text, text, got, err, test.want, test.order)
		}
	}
	for _, test := range []struct {
		text     string
		pictures []runtime.Picture
		want     string
	}{
		{"[img-1]", []runtime.Picture{a}, "[img-1], which is not among"},
		{"[img-99999999999999999999]", []runtime.Picture{a}, "[img-99999999999999999999], which"},
		{"", []runtime.Picture{a, a}, "two pictures have the ID 0"},
	} {
		if _, _, err := processor.ShowPictures(test.text, test.pictures); !errors.Is(err, runtime.ErrPictures) ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v", test.text, err)
		}
	}
	ids, err := processor.Encode(t.Context(), p+"x"+p)
	if err != nil || processor.PicturePlaces(ids) != 2 || !slices.Equal(ids[:3], []int32{runtimetest.VisionStart,
		runtimetest.ImagePad, runtimetest.VisionEnd}) {
		t.Errorf("ids %v, %v", ids, err)
	}
}

// The bounds of pictures come from either file.
func TestPreprocessorFiles(t *testing.T) {
	const old, part = "preprocessor_config.json", "processor_config.json"
	for _, test := range []struct {
		name  string
		files map[string]string
		limit int
	}{
		{"none", nil, 2097152},
		{"published", map[string]string{old: `{"max_pixels": 70000}`}, 70000},
		{"transformers 5", map[string]string{old: `{"max_pixels": 70000}`,
			part: `{"image_processor": {"max_pixels": 80000}}`}, 80000},
		{"another processor", map[string]string{old: `{"max_pixels": 70000}`,
			part: `{"processor_class": "Qwen3VLProcessor"}`}, 70000},
	} {
		dir := t.TempDir()
		copyModel(t, dir, "qwen3_5-vision", test.files)
		store, entry := converttest.PackFrom(t, dir, "pictures")
		f := Files{store, entry.Image}
		config, err := f.Config()
		if err != nil {
			t.Fatal(err)
		}
		if s, err := f.readVision(config); err != nil || s.Processor.MaxPixels != test.limit {
			t.Errorf("%s: %+v, %v", test.name, s, err)
		}
	}
}

// copyModel copies config.json and weights of a checkpoint, and writes further files.
func copyModel(t *testing.T, dir, name string, more map[string]string) {
	t.Helper()
	for _, file := range []string{"config.json", "model.safetensors"} {
		b, err := os.ReadFile(filepath.Join(modeltest.Dir(name), file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for file, text := range more {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The end tokens are those that any file names, each once.
func TestEndTokens(t *testing.T) {
	demo := filepath.Join("..", "..", "testdata", "models", "demo") // its tokenizer's end is 1023
	for _, c := range []struct {
		generation, config string
		want               []int32
	}{
		{`{"eos_token_id": 0}`, `"eos_token_id": 5`, []int32{0, 5, 1023}},
		{`{"eos_token_id": [3, 1023]}`, `"eos_token_id": [4, 3]`, []int32{3, 1023, 4}},
		{`{}`, `"eos_token_id": null`, []int32{1023}},
		{`{"eos_token_id": []}`, `"eos_token_id": 1023`, []int32{1023}},
	} {
		dir := t.TempDir()
		for _, name := range []string{"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} {
			b, err := os.ReadFile(filepath.Join(demo, name))
			if err != nil {
				t.Fatal(err)
			}
			b = []byte(strings.Replace(string(b), `"eos_token_id": 1023`, c.config, 1))
			runtimetest.Rewrite(t, filepath.Join(dir, name), b)
		}
		runtimetest.Rewrite(t, filepath.Join(dir, "generation_config.json"), []byte(c.generation))
		p, err := Open(converttest.PackFrom(t, dir, "m"))
		if err != nil || !slices.Equal(p.EOS, c.want) {
			t.Errorf("%s, %s: %v, %v, want %v", c.generation, c.config, p.EOS, err, c.want)
		}
	}
}
