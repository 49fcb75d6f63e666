package convert

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/gguf/gguftest"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/convert/provenance"
	"github.com/ingotml/ingot/quantize/ggml"
	"github.com/ingotml/ingot/safetensors"
)

// parts formats what a plan lacks of its checkpoint.
func parts(list []plan.NotImported) string {
	var out []string
	for _, n := range list {
		out = append(out, n.Part)
	}
	return strings.Join(out, " ")
}

func dryRun(t *testing.T, dir string) *plan.Plan {
	t.Helper()
	p, err := DryRun(t.Context(), nil, from(absolute(t, dir)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Each part of a checkpoint that is not imported is one note with its size. What nothing is lost with, such as buffers
// and copies, is none.
func TestNotImported(t *testing.T) {
	for model, want := range map[string]string{
		"gemma3-published":          "multi_modal_projector vision_tower",
		"gemma3-text-published":     "",
		"llama4-published":          "multi_modal_projector vision_model",
		"ministral3-mistral3":       "multi_modal_projector vision_tower",
		"qwen4_exp-published":       "visual",
		"qwen3_5-published":         "",
		"deepseek_v3-published":     "",
		"phi4_multimodal-published": "embed_tokens_extend",
		"qwen3-default":             "",
	} {
		t.Run(model, func(t *testing.T) {
			p := dryRun(t, "../testdata/models/"+model)
			if got := parts(p.NotImported); got != want {
				t.Errorf("not imported: %s, want %s", got, want)
			}
			notes := 0
			for _, w := range p.Warnings {
				if strings.HasPrefix(w, "not imported: ") {
					notes++
				}
			}
			if notes != len(p.NotImported) {
				t.Errorf("%d notes: %q", notes, p.Warnings)
			}
			f, err := safetensors.Open("../testdata/models/" + model + "/model.safetensors")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, n := range p.NotImported {
				tensors, bytes := 0, int64(0)
				for _, x := range f.Header().Tensors {
					if strings.HasPrefix(strings.TrimPrefix(x.Name, "model."), n.Part+".") {
						tensors, bytes = tensors+1, bytes+x.Size()
					}
				}
				if n.Tensors != tensors || n.Bytes != bytes || n.Why == "" {
					t.Errorf("%+v, want %d tensors of %d bytes", n, tensors, bytes)
				}
			}
		})
	}
}

// Heads that predict further tokens are one part, however many layers they have.
func TestHeadsNotImported(t *testing.T) {
	const config = `{"model_type": "glm4_moe", "architectures": ["Glm4MoeForCausalLM"], "vocab_size": 64,
	"hidden_size": 32, "intermediate_size": 48, "moe_intermediate_size": 16,
	"num_hidden_layers": 2, "num_attention_heads": 4,
	"num_key_value_heads": 2, "head_dim": 8, "n_routed_experts": 2, "num_experts_per_tok": 1, "n_shared_experts": 1,
	"first_k_dense_replace": 2, "routed_scaling_factor": 1.0, "n_group": 1, "topk_group": 1, "norm_topk_prob": true,
	"num_nextn_predict_layers": %d, "max_position_embeddings": 128, "tie_word_embeddings": false}`
	for layers, want := range map[int]string{0: "", 2: "mtp: 4 tensors, 512 B: a head for tokens after the next"} {
		c := tiny(t, fmt.Sprintf(config, layers), 1)
		for i := range layers {
			for _, name := range []string{"enorm", "hnorm"} {
				name = fmt.Sprintf("model.layers.%d.%s.weight", 2+i, name)
				c.add("model.safetensors", random(rand.New(rand.NewPCG(1, 1)), name, safetensors.F32, 32))
			}
		}
		p := dryRun(t, c.write(t, t.TempDir()))
		got := ""
		for _, n := range p.NotImported {
			got += n.String()
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%d layers: %q, want %q", layers, got, want)
		}
	}
}

// What an adapter has for such parts is a part of its own. The result of a create and the record have all of them.
func TestNotImportedOfAnAdapter(t *testing.T) {
	base := "../testdata/models/gemma3-published"
	src := openModel(t, base)
	const text = "language_model.model.layers.0.self_attn.q_proj"
	const tower = "vision_tower.encoder.layers.0.self_attn.q_proj"
	dir := writeLoRA(t, append(lora(t, src, text+".weight", "base_model.model."+text, ""),
		lora(t, src, tower+".weight", "base_model.model.model."+tower, "")...)...)
	store := openStore(t)
	r := mustCreate(t, store, "x", from(absolute(t, base), adapterLine(dir)), Options{})
	want := "vision_tower of the adapter: 2 tensors, 256 B: "
	if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.HasPrefix(w, "not imported: "+want) }) {
		t.Errorf("notes %q", r.Warnings)
	}
	p := record(t, store, r)
	if got := parts(p.NotImported); got != "vision_tower of the adapter multi_modal_projector vision_tower" {
		t.Errorf("the record has %s", got)
	}
	text2, err := json.Marshal(provenance.Record{NotImported: p.NotImported[:1]})
	if err != nil || !strings.Contains(string(text2), `"not_imported":[{"part":"vision_tower of the adapter","tensors":2,`+
		`"bytes":256,"why":"`) {
		t.Errorf("%s, %v", text2, err)
	}
}

// A projector that is left out is one of these parts, too: it has no folder and no tensors.
func TestProjectorNotImported(t *testing.T) {
	projector := gguftest.Llama(ggml.F16)
	projector.Set("general.architecture", gguf.Text("clip"))
	dir, apart := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(dir, "model.gguf"), gguftest.Llama(ggml.F16).Bytes(t))
	for _, folder := range []string{dir, apart} {
		writeFile(t, filepath.Join(folder, "mmproj-F16.gguf"), projector.Bytes(t))
	}
	model := filepath.Join(dir, "model.gguf")
	for text, want := range map[string]string{
		"FROM " + dir: "mmproj-F16.gguf", "FROM " + model: "",
		"FROM " + model + "\nFROM " + filepath.Join(apart, "mmproj-F16.gguf"): "mmproj-F16.gguf",
	} {
		store := openStore(t)
		p := record(t, store, mustCreate(t, store, "x", parsed(t, text), Options{}))
		if got := parts(p.NotImported); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
		for _, n := range p.NotImported {
			size := int64(len(projector.Bytes(t)))
			if n.Bytes != size || n.Tensors != 0 || !strings.Contains(n.Why, "a projector for pictures") {
				t.Errorf("%q: %+v", text, n)
			}
		}
	}
}
