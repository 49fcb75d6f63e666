package convert

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/gguf"
	ggufcheckpoint "github.com/ingotml/ingot/convert/gguf/checkpoint"
	"github.com/ingotml/ingot/convert/gguf/gguftest"
	"github.com/ingotml/ingot/convert/provenance"
	"github.com/ingotml/ingot/quantize/ggml"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/ingotml/ingot/registry/hub/hubtest"
	"github.com/ingotml/ingot/safetensors"
)

// A GGUF file of a repository is found by its name or type, and gives the digest of the same file on disk, whatever
// fails on the way.
func TestHubGGUF(t *testing.T) {
	h := newHub(t)
	published, err := os.ReadFile(filepath.Join("testdata", "gguf", "qwen3-default.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{
		"m-Q4_1.gguf": gguftest.Llama(ggml.Q4_1).Bytes(t), "Q6_K/m-Q6_K.gguf": gguftest.Llama(ggml.Q6_K).Bytes(t),
		"m-BF16.gguf": published, "mmproj-F16.gguf": []byte("not a model"),
		"config.json": []byte(`{"model_type": "odd"}`), "LICENSE": []byte("MIT"),
	}
	contents, dir := map[string]hubtest.Content{}, t.TempDir()
	for name, data := range files {
		contents[name] = hubtest.Bytes(data)
		path := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	repository := h.Add("tiny/model", contents)
	h.Set(func(h *hubtest.Hub) { h.Faults = hubtest.Faults{Share: 0.2, Seed: 1} })
	client := hubClient(h, hub.Options{})
	for wanted, file := range map[string]string{
		"Q4_1": "m-Q4_1.gguf", "Q6_K": "m-Q6_K.gguf", "m-BF16.gguf": "m-BF16.gguf",
	} {
		alone := filepath.Join(t.TempDir(), file)
		if err := errors.Join(os.Link(filepath.Join(dir, file), alone),
			os.Link(filepath.Join(dir, "LICENSE"), filepath.Join(filepath.Dir(alone), "LICENSE"))); err != nil {
			t.Fatal(err)
		}
		want, err := createFrom(t.Context(), newStore(t), filepath.Dir(alone), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := newStore(t)
		got, err := createFrom(t.Context(), s, "hf.co/tiny/model:"+wanted, client, nil)
		if err != nil || got.Digest != want.Digest {
			t.Errorf("%s: %s, want %s: %v", wanted, got.Digest, want.Digest, err)
			continue
		}
		records, err := provenance.Read(t.Context(), s, got.Digest)
		if err != nil || len(records) != 1 || records[0].From.Commit != repository.Head() {
			t.Errorf("%s: %+v, %v", wanted, records, err)
		}
	}
	for name, is := range map[string]error{
		"hf.co/tiny/model:Q8_0": ggufcheckpoint.ErrNoFile, "hf.co/tiny/model": safetensors.ErrAmbiguous,
	} {
		_, err := createFrom(t.Context(), newStore(t), name, client, nil)
		if !errors.Is(err, is) || !strings.Contains(err.Error(), "Q6_K/m-Q6_K.gguf, m-BF16.gguf, m-Q4_1.gguf") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A projector of a repository beside a model is left out.
func TestHubProjector(t *testing.T) {
	h := newHub(t)
	projector := gguftest.Llama(ggml.F16)
	projector.Set("general.architecture", gguf.Text("clip"))
	h.Add("tiny/model", map[string]hubtest.Content{
		"m-F16.gguf": hubtest.Bytes(gguftest.Llama(ggml.F16).Bytes(t)), "mmproj-F16.gguf": hubtest.Bytes(projector.Bytes(t)),
	})
	opts := Options{Remote: hubClient(h, hub.Options{})}
	both := parsed(t, "FROM hf.co/tiny/model:F16\nFROM hf.co/tiny/model:mmproj-F16.gguf")
	r := mustCreate(t, openStore(t), "x", both, opts)
	const note = "not imported: mmproj-F16.gguf: 1.2 MB: it is a projector"
	if notes := strings.Join(r.Warnings, "\n"); !strings.Contains(notes, note) {
		t.Error(notes)
	}
	_, err := Create(t.Context(), openStore(t), modelName(t, "x"),
		parsed(t, "FROM hf.co/tiny/model:F16\nFROM hf.co/tiny/model:m-F16.gguf"), opts)
	if err == nil || !strings.Contains(err.Error(), "a second FROM is not supported") {
		t.Error(err)
	}
}
