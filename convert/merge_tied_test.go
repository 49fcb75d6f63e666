package convert

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
)

// filled is a tensor of an adapter whose elements are all equal.
func filled(name string, value float32, shape ...int64) tensor {
	x := f32(name, shape...)
	for range x.Size() / 4 {
		bits := math.Float32bits(value)
		x.data = append(x.data, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
	}
	return x
}

// rowOf returns the beginning of a tensor of an image; nil = it has none.
func rowOf(t *testing.T, s *store.Store, model, name string) []float32 {
	t.Helper()
	l, ok := mustResolve(t, s, model).Image.Find(manifest.KindTensor, name)
	if !ok {
		return nil
	}
	return values(t, s.BlobPath(l.Digest), l.Name)[:8]
}

// An adapter of the head or of the embedding of a model that ties them separates the two, as PEFT's own model does,
// unless it changes both alike.
func TestAdapterOfTied(t *testing.T) {
	const embedding, head = "model.embed_tokens", "lm_head"
	for _, model := range []string{"llama-tied", "gemma3-published", "qwen3_5-published-tied"} {
		base := "../testdata/models/" + model
		src := openModel(t, base)
		i := slices.IndexFunc(src.Tensors(), func(w source.Tensor) bool {
			return strings.HasSuffix(w.Name, "embed_tokens.weight")
		})
		rows, cols := src.Tensors()[i].Shape[0], src.Tensors()[i].Shape[1]
		whole := func(module string, value float32) tensor { return filled(module+".weight", value, rows, cols) }
		lora := []tensor{filled(head+".lora_A.weight", 1, 2, cols), filled(head+".lora_B.weight", 0.25, rows, 2)}
		old := values(t, filepath.Join(base, "model.safetensors"), src.Tensors()[i].Name)[:8]
		added := make([]float32, len(old))
		for i, v := range old {
			added[i] = rounded(v + 0.5)
		}
		one, two := slices.Repeat([]float32{1}, 8), slices.Repeat([]float32{2}, 8)
		for name, c := range map[string]struct {
			list            []tensor
			tying           bool
			embedding, head []float32 // nil = it is the embedding
		}{
			"LoRA":             {lora, false, old, added},
			"head":             {[]tensor{whole(head, 1)}, false, old, one},
			"embedding":        {[]tensor{whole(embedding, 1)}, false, one, old},
			"both equal":       {[]tensor{whole(head, 2), whole(embedding, 2)}, false, two, nil},
			"both different":   {[]tensor{whole(head, 1), whole(embedding, 2)}, false, two, one},
			"LoRA, embedding":  {append([]tensor{whole(embedding, 2)}, lora...), false, two, added},
			"tied by PEFT":     {[]tensor{whole(embedding, 1)}, true, one, nil},
			"tied by its head": {[]tensor{whole(head, 1)}, true, one, nil},
			"wrapped": {[]tensor{whole("language_model.lm_head.modules_to_save.default", 1),
				whole("model.language_model.embed_tokens", 1)}, false, one, nil},
		} {
			dir := writeLoRA(t, c.list...)
			if c.tying {
				config := `{"peft_type": "LORA", "r": 2, "lora_alpha": 2, "ensure_weight_tying": true}`
				writeFile(t, filepath.Join(dir, "adapter_config.json"), []byte(config))
			}
			store := openStore(t)
			r := mustCreate(t, store, "x", from(absolute(t, base), adapterLine(dir)), Options{})
			if c.list[0].Name == "base_model.model."+head+".lora_A.weight" { // and of an image
				other := openStore(t)
				mustCreate(t, other, "base", from(absolute(t, base)), Options{})
				if again := mustCreate(t, other, "y", from("base", adapterLine(dir)), Options{}); again.Digest != r.Digest {
					t.Errorf("%s, %s: of an image it is %s, of a folder %s", model, name, again.Digest, r.Digest)
				}
			}
			img := mustResolve(t, store, "x").Image
			own := ""
			for _, l := range img.Layers {
				if strings.HasSuffix(l.Name, "embed_tokens.weight") && l.Kind == manifest.KindTensor {
					own = l.Name
				}
			}
			gotEmbedding, gotHead := rowOf(t, store, "x", own), rowOf(t, store, "x", table.HeadName)
			if !slices.Equal(gotEmbedding, c.embedding) || !slices.Equal(gotHead, c.head) {
				t.Errorf("%s, %s: embedding %v, head %v, want %v, %v", model, name, gotEmbedding, gotHead, c.embedding, c.head)
			}
			var config map[string]any
			text := readLayer(t, store, img, manifest.KindFile, "config.json")
			if err := json.Unmarshal([]byte(text), &config); err != nil {
				t.Fatal(err)
			}
			note := strings.Contains(strings.Join(r.Warnings, "\n"), "the image has a head of its own")
			if untied := config["tie_word_embeddings"] == false; untied != (c.head != nil) || note != untied {
				t.Errorf("%s, %s: tie_word_embeddings is %v, notes %q", model, name, config["tie_word_embeddings"], r.Warnings)
			}
			for _, x := range record(t, store, r).Tensors {
				for _, s := range x.Sources {
					if s.Name == head && s.File == "model.safetensors" {
						t.Errorf("%s, %s: the record has %+v", model, name, s)
					}
				}
			}
		}
	}
}

// rounded rounds to bfloat16.
func rounded(v float32) float32 {
	bits := math.Float32bits(v)
	return math.Float32frombits((bits + 0x7fff + bits>>16&1) &^ 0xffff)
}
