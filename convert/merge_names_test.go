package convert

import (
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/adapter"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/safetensors"
)

// textPrefixes are what model classes put before the layers of a text model, with and without PEFT's own.
var textPrefixes = []string{
	"base_model.model.model.language_model.", "base_model.model.model.", "base_model.model.",
	"base_model.model.language_model.model.", "base_model.model.language_model.", "language_model.model.", "model.",
	"base_model.model.base_model.model.model.", "base_model.model._orig_mod.model.", "base_model.model.module.model.",
}

// lora makes the tensors of an adapter of rank 2 for a weight of a checkpoint.
func lora(t *testing.T, src *source.Source, weight, module, name string) []tensor {
	t.Helper()
	w, err := src.Lookup(weight)
	if err != nil {
		t.Fatal(err)
	}
	make := func(which string, shape ...int64) tensor {
		return tensor{Tensor: safetensors.Tensor{
			Name: module + ".lora_" + which + name + ".weight", DType: safetensors.F32, Shape: shape}}
	}
	return []tensor{make("A", 2, w.Shape[1]), make("B", w.Shape[0], 2)}
}

func openModel(t *testing.T, dir string) *source.Source {
	t.Helper()
	src, err := source.Open(dir, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

// merge merges an adapter into a checkpoint, and returns the names of what it changes.
func merge(t *testing.T, src *source.Source, list ...tensor) ([]string, error) {
	t.Helper()
	a, err := adapter.Open(safetensors.Dir(writeLoRA(t, list...)))
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { a.Close() })
	m, err := src.Merge(a)
	var names []string
	for _, c := range m.Merged {
		names = append(names, c.Name)
	}
	return names, err
}

// An adapter of the text model changes the text model, whatever class it was trained in and whatever else is in the
// checkpoint.
func TestAdapterOfAnotherClass(t *testing.T) {
	for _, c := range []struct{ model, prefix, module string }{
		{"gemma3-published", "language_model.model.", "layers.0.self_attn.q_proj"},
		{"gemma3-saved", "", "layers.1.mlp.down_proj"},
		{"gemma3-text-published", "model.", "layers.0.self_attn.q_proj"},
		{"qwen3_5-published", "model.language_model.", "layers.3.self_attn.q_proj"},
		{"qwen3_5-published", "model.language_model.", "layers.0.linear_attn.in_proj_qkv"},
		{"qwen3_5_moe-published", "model.language_model.", "layers.3.self_attn.o_proj"},
		{"llama4-published", "language_model.model.", "layers.0.self_attn.q_proj"},
		{"ministral3-mistral3", "language_model.model.", "layers.1.self_attn.q_proj"},
		{"qwen4_exp-published", "model.language_model.", "layers.1.self_attn.q_proj"},
		{"deepseek_v3-published", "model.", "layers.0.self_attn.o_proj"},
		{"gemma4-e2b", "", "layers.0.self_attn.q_proj"},
		{"llama-default", "model.", "layers.0.self_attn.v_proj"},
	} {
		t.Run(c.model+" "+c.module, func(t *testing.T) {
			dir := "../testdata/models/" + c.model
			base := openModel(t, dir)
			i := slices.IndexFunc(base.Tensors(), func(w source.Tensor) bool {
				return strings.HasSuffix(w.Name, c.module+".weight") && strings.HasPrefix(w.Name, c.prefix) &&
					!strings.Contains(w.Name, "vision") && !strings.Contains(w.Name, "audio")
			})
			if i < 0 {
				t.Fatalf("no %s", c.module)
			}
			want := base.Tensors()[i]
			norm := strings.Replace(want.Name, c.module, "norm", 1)
			for _, prefix := range textPrefixes {
				for _, name := range []string{"", ".default"} {
					got, err := merge(t, openModel(t, dir), lora(t, base, want.Name, prefix+c.module, name)...)
					if err != nil || !slices.Equal(got, []string{want.Name}) {
						t.Errorf("%s%s changes %v, %v, want %s", prefix, name, got, err, want.Name)
					}
				}
				w, err := base.Lookup(norm)
				if err != nil || !strings.HasPrefix(prefix, "base_model.model.") {
					continue // Qwen 4 has another last norm
				}
				for _, saved := range []string{"", ".modules_to_save", ".modules_to_save.default"} {
					whole := "norm" + saved + ".weight"
					got, err := merge(t, openModel(t, dir), tensor{Tensor: safetensors.Tensor{
						Name: prefix + whole, DType: safetensors.F32, Shape: w.Shape}})
					if err != nil || !slices.Equal(got, []string{norm}) {
						t.Errorf("%s%s changes %v, %v, want %s", prefix, whole, got, err, norm)
					}
				}
			}
		})
	}
}

// An adapter of a tower or of a head that drafts changes it if the image has it. If not, it is left out with its
// reason, or refused if nothing is left.
func TestAdapterOfATower(t *testing.T) {
	for _, c := range []struct {
		model, text string
		module      string // as the adapter names it
		want        string // what it changes; "" = nothing
	}{
		{"gemma3-published", "language_model.model.layers.0.self_attn.q_proj",
			"model.vision_tower.encoder.layers.0.self_attn.q_proj", ""},
		{"gemma3-published", "language_model.model.layers.0.self_attn.q_proj",
			"vision_tower.vision_model.encoder.layers.0.self_attn.q_proj", ""},
		{"gemma3-text-published", "model.layers.0.self_attn.q_proj", "vision_tower.encoder.layers.0.self_attn.q_proj", ""},
		{"llama4-published", "language_model.model.layers.0.self_attn.q_proj",
			"vision_model.model.layers.0.self_attn.q_proj", ""},
		{"ministral3-mistral3", "language_model.model.layers.0.self_attn.q_proj",
			"model.vision_tower.transformer.layers.0.attention.q_proj", ""},
		{"qwen4_exp-published", "model.language_model.layers.1.self_attn.q_proj", "model.visual.blocks.0.attn.proj", ""},
		{"qwen3_5-published", "model.language_model.layers.3.self_attn.q_proj", "visual.blocks.0.attn.proj",
			"model.visual.blocks.0.attn.proj"},
		{"qwen3_5-published", "model.language_model.layers.3.self_attn.q_proj", "model.mtp.layers.0.self_attn.q_proj",
			"mtp.layers.0.self_attn.q_proj"},
	} {
		t.Run(c.model+" "+c.module, func(t *testing.T) {
			dir := "../testdata/models/" + c.model
			src := openModel(t, dir)
			text := lora(t, src, c.text+".weight", "base_model.model."+c.text, "")
			other := c.text
			if c.want != "" {
				other = c.want
			}
			own := lora(t, src, other+".weight", "base_model.model."+c.module, "")
			want := []string{c.text + ".weight"}
			if c.want != "" {
				want = append(want, c.want+".weight")
			}
			slices.Sort(want)
			ignored := len(src.Ignored())
			got, err := merge(t, src, append(text, own...)...)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("changes %v, %v, want %v", got, err, want)
			}
			if n := len(src.Ignored()) - ignored; n != 2*(2-len(want)) {
				t.Errorf("%d tensors are ignored", n)
			}
			got, err = merge(t, openModel(t, dir), own...)
			refused := "not imported, such as base_model.model." + c.module
			if c.want == "" && (err == nil || !strings.Contains(err.Error(), refused)) {
				t.Errorf("alone: %v", err)
			}
			if c.want != "" && (err != nil || !slices.Equal(got, []string{c.want + ".weight"})) {
				t.Errorf("alone: %v, %v", got, err)
			}
		})
	}
}

// A module of a tower that the type does not know, or of another model, is never taken for one of the text model.
func TestAdapterOfUnknownModule(t *testing.T) {
	for model, modules := range map[string][]string{
		"llama-default": {
			"vision_tower.vision_model.encoder.layers.0.self_attn.q_proj", "image_encoder.layers.0.self_attn.q_proj",
			"model.layers.9.self_attn.q_proj", "model.layers.0.self_attn.W_pack", "mtp.layers.0.self_attn.q_proj",
		},
		"gemma3-published":  {"image_encoder.layers.0.self_attn.q_proj", "model.language_model.layers.40.self_attn.q_proj"},
		"qwen3_5-published": {"model.layers.3.self_attn.qkv_proj", "draft.layers.0.self_attn.q_proj"},
	} {
		for _, module := range modules {
			src := openModel(t, "../testdata/models/"+model)
			i := slices.IndexFunc(src.Tensors(), func(w source.Tensor) bool {
				return strings.HasSuffix(w.Name, ".self_attn.q_proj.weight")
			})
			own := src.Tensors()[i].Name
			_, err := merge(t, src, lora(t, src, own, "base_model.model."+module, "")...)
			if err == nil || !strings.Contains(err.Error(), module) || !strings.Contains(err.Error(), "; it has ") ||
				!strings.Contains(err.Error(), "adapter of another model") {
				t.Errorf("%s: %s: %v", model, module, err)
			}
		}
	}
}
