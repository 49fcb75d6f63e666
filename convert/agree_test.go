package convert

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/modelfile/parameters"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/processor"
)

// opened opens all that a run reads of an image before its weights.
func opened(s *store.Store, entry *store.Entry) error {
	if _, err := prompt.Open(s, entry); err != nil {
		return err
	}
	_, err := processor.Open(s, entry)
	return err
}

// with returns a model of the store with another text in the place of a file, as an image from elsewhere may have it.
func with(t *testing.T, s *store.Store, kind manifest.Kind, name, text string) *store.Entry {
	t.Helper()
	d, size, err := s.PutBytes(t.Context(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	img := mustResolve(t, s, "good").Image
	img.Layers = slices.DeleteFunc(slices.Clone(img.Layers), func(l manifest.Layer) bool {
		return l.Kind == kind && l.Name == name
	})
	img.Layers = append(img.Layers, manifest.Layer{Kind: kind, Name: name, Digest: d, Size: size})
	if _, err := s.Put(t.Context(), modelName(t, "foreign"), img); err != nil {
		t.Fatal(err)
	}
	return mustResolve(t, s, "foreign")
}

// TestImagesAgree checks of images from elsewhere with files that create refuses: a run has one error, which is the
// image's fault and not the server's, and what create makes of such an image is refused or runs.
func TestImagesAgree(t *testing.T) {
	s := openStore(t)
	dir := tiny(t, tinyConfig, 1).write(t, t.TempDir())
	mustCreate(t, s, "good", from(dir), Options{})
	for _, c := range []struct {
		kind       manifest.Kind
		name, text string
	}{
		{manifest.KindParams, "params.json", `{"temperature": "hot"}`}, {manifest.KindParams, "params.json", `{"stop": 5}`},
		{manifest.KindParams, "params.json", `{"stop": ["` + strings.Repeat("x", limits.StopText+1) + `"]}`},
		{manifest.KindParams, "params.json", `{"stop": ["a"` + strings.Repeat(`,"a"`, limits.Stops) + `]}`},
		{manifest.KindParams, "params.json", `[]`}, {manifest.KindParams, "params.json", `{"top_k": 1.5}`},
		{manifest.KindMessages, "messages.json", `{}`},
		{manifest.KindFile, "generation_config.json", `{"eos_token_id": -7}`},
		{manifest.KindFile, "generation_config.json", `{"suppress_tokens": "x"}`},
		{manifest.KindFile, "generation_config.json", `[` + strings.Repeat("0,", limits.JSONElements) + `0]`},
		{manifest.KindFile, "config.json", `{"model_type": "llama"}`}, {manifest.KindFile, "config.json", `{`},
		{manifest.KindFile, "config.json", `{"model_type": "unknown", "architectures": ["X"]}`},
		{manifest.KindFile, "tokenizer.json", `{}`}, {manifest.KindFile, "tokenizer.model", "x"},
		{manifest.KindFile, "ingot.json", `[]`},
	} {
		what := fmt.Sprintf("%s: %.60q", c.name, c.text)
		entry := with(t, s, c.kind, c.name, c.text)
		err := opened(s, entry)
		if !errors.Is(err, runtime.ErrImage) {
			t.Errorf("%s: a run has %v", what, err)
		}
		if status, _ := fault.Status(err); status != fault.Invalid {
			t.Errorf("%s: the status is %d: %v", what, status, err)
		}
		_, errCreate := Create(t.Context(), s, modelName(t, "again"), from("foreign"), Options{})
		if errCreate == nil {
			if err := opened(s, mustResolve(t, s, "again")); err != nil {
				t.Errorf("%s: created again, but a run has %v", what, err)
			}
		}
	}
}

// TestParametersAgree checks that create refuses the parameters that a run refuses, and that a run takes the largest
// that create accepts.
func TestParametersAgree(t *testing.T) {
	dir := tiny(t, tinyConfig, 1).write(t, t.TempDir())
	stop := func(text string) modelfile.Command {
		return modelfile.Command{Name: modelfile.Parameter, Key: "stop", Value: text}
	}
	for what, lines := range map[string][]modelfile.Command{
		"long": {stop(strings.Repeat("x", limits.StopText+1))}, "many": slices.Repeat([]modelfile.Command{stop("x")},
			limits.Stops+1),
	} {
		_, err := Create(t.Context(), openStore(t), modelName(t, "m"), from(dir, lines...), Options{})
		if err == nil || len(err.Error()) > limits.Message {
			t.Errorf("%s: %.300v", what, err)
		}
	}
	s := openStore(t)
	lines := slices.Repeat([]modelfile.Command{stop(strings.Repeat("x", limits.StopText))}, limits.Stops)
	for _, p := range parameters.All() {
		if p.Type == parameters.Int || p.Type == parameters.Float {
			for _, v := range []float64{p.Min, p.Max} {
				if v-v == 0 {
					lines = append(lines, modelfile.Command{Name: modelfile.Parameter, Key: p.Name, Value: fmt.Sprintf("%.0f", v)})
				}
			}
		}
	}
	ck := tiny(t, tinyConfig, 2)
	ck.files["generation_config.json"] = `{"temperature": 100, "top_k": 1073741824, "repetition_penalty": 100,
		"eos_token_id": [2, 299, 300, 2147483647], "suppress_tokens": [5, 300]}`
	r := mustCreate(t, s, "m", from(ck.write(t, t.TempDir()), lines...), Options{})
	if all := strings.Join(r.Warnings, "\n"); !strings.Contains(all, "eos_token_id has 300, but the vocabulary has 300") ||
		!strings.Contains(all, "suppress_tokens has 300") {
		t.Errorf("warnings %s", all)
	}
	p, err := processor.Open(s, mustResolve(t, s, "m"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.EOS, []int32{2, 299}) || len(p.Defaults().Stop) != limits.Stops {
		t.Errorf("it ends with %d, %d stop texts", p.EOS, len(p.Defaults().Stop))
	}
	if err := p.Defaults().Sampling.Check(); err != nil {
		t.Error(err)
	}
}
