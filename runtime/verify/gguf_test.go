package verify

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// What the files of some checkpoints do not say.
const (
	noWindow   = "the converter writes no window"
	noLayers   = "the converter does not write which layers have a window"
	noRope     = "the converter does not write this rope"
	noNorm     = "llama.cpp has the normalization of the experts' weights of published models only"
	noScore    = "the format cannot say how scores are scaled"
	noPairs    = "llama.cpp rotates neighbouring channels only"
	noFunction = "the format cannot say the activation function"
	published  = "llama.cpp has constants of published models only"
)

// ggufsDiffer are checkpoints whose files do not say all of their configuration, or cannot be imported.
var ggufsDiffer = map[string]string{
	"afmoe-published":            noLayers,
	"afmoe-saved":                noLayers,
	"deepseek_v2-saved":          "llama.cpp has no biases of this architecture",
	"deepseek_v3-saved":          noPairs,
	"dots1-saved":                noWindow,
	"gemma2-published":           noScore,
	"gemma3-capped":              noLayers,
	"gemma3-published":           noLayers,
	"gemma3-saved":               noLayers,
	"gemma3-scaled":              noLayers,
	"gemma3-text-published":      noLayers,
	"gemma3-text-saved":          noLayers,
	"gemma4-12b-saved":           noRope,
	"glm-published":              "the converter writes another epsilon of norms",
	"glm-saved":                  "the converter does not write the size of a head",
	"glm4_moe_lite-direct":       noPairs,
	"glm4_moe_lite-yarn":         noRope,
	"gpt2-saved":                 noFunction,
	"gpt2-unscaled":              noScore,
	"gpt_neox-saved":             noFunction,
	"gpt_oss-published":          published,
	"gpt_oss-saved":              published,
	"hunyuan_v1_dense-published": noRope,
	"llama4-published":           published,
	"llama4-saved":               "the converter does not write which layers have experts",
	"llama-mistral":              noWindow,
	"llama-mistral-saved":        noWindow,
	"llama-rope-yarn-factor":     noRope,
	"llama-rope-yarn-mscale":     noRope,
	"long-qwen3-dynamic":         noRope,
	"long-qwen3-longrope":        noRope,
	"ministral3-saved":           noWindow,
	"mixtral-saved":              noWindow,
	"olmoe-saved":                noNorm,
	"phimoe-published":           published,
	"qwen2-published":            noWindow,
	"qwen2-saved":                noWindow,
	"qwen3-longrope":             noRope,
	"qwen3-window":               noWindow,
	"qwen3-window-types":         noWindow,
	"qwen3_5-published":          "the file has exponentials, whose logarithms are rounded",
	"qwen3_moe-published":        noNorm,
	"qwen3_moe-window":           noWindow,
	"smollm3-saved":              noLayers,
	"starcoder2-published":       noWindow,
	"youtu-saved":                noPairs,
}

// ggufsUnknown are model types that ingot runs and the converter writes, but whose files are refused by name.
var ggufsUnknown = map[string]string{
	"qwen4_exp": "the factors of hashes of n-grams are metadata, and the embeddings of n-grams one tensor",
}

// ggufsRound are checkpoints whose weights the converter multiplies: files of bfloat16 have them rounded.
var ggufsRound = []string{"falcon_h1-gate_first", "falcon_h1-published"}

// ggufsMean are checkpoints whose files mean other configurations: the keys that differ. With them, a checkpoint has
// the logits of its file.
var ggufsMean = map[string]string{
	// The format cannot say the limits of steps.
	"bamba-saved":  `{"time_step_limit": null}`,
	"mamba2-saved": `{"time_step_limit": null}`,
	// A layer of attention with a rope beside Mamba layers is a Bamba, for the converter.
	"granitemoehybrid-saved": `{"time_step_limit": null, "position_embedding_type": "nope"}`,
	"nemotron_h-published":   `{"time_step_min": 0.001}`,
	// llama.cpp does not cap the router's scores, and a file without a pattern has every fourth layer full.
	"laguna-saved": `{"moe_router_logit_softcapping": 0,
		"layer_types": ["full_attention", "sliding_attention", "sliding_attention"]}`,
	// The weights of experts are not scaled.
	"lfm2_moe-published": `{"routed_scaling_factor": 1}`,
	// The converter does not write that queries grow.
	"mistral4-published": `{"rope_parameters": {"beta_fast": 2.0, "factor": 4.0, "mscale": 0.707, "mscale_all_dim": 0.707,
		"original_max_position_embeddings": 16, "rope_theta": 100.0, "rope_type": "yarn"}}`,
	"mimo_v2_flash-saved": `{"routed_scaling_factor": 1, "norm_topk_prob": true, "rope_parameters": {
		"full_attention": {"partial_rotary_factor": 0.5, "rope_theta": 10000.0, "rope_type": "default"},
		"sliding_attention": {"partial_rotary_factor": 0.5, "rope_theta": 1000000.0, "rope_type": "default"}}}`,
}

// meant returns a checkpoint's folder, or a copy with the configuration that its file means.
func meant(t *testing.T, name string) string {
	t.Helper()
	text, ok := ggufsMean[name]
	if !ok {
		return modeltest.Dir(name)
	}
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(modeltest.Dir(name))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "config.json")
	config, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all, changes map[string]any
	err = errors.Join(json.Unmarshal(pyjson.Plain(config), &all), json.Unmarshal([]byte(text), &changes))
	if err != nil {
		t.Fatal(err)
	}
	at := all
	if text, ok := all["text_config"].(map[string]any); ok {
		at = text
	}
	for key, value := range changes {
		if _, ok := at[key]; !ok {
			t.Errorf("%s has no key %s", name, key)
		}
		if at[key] = value; value == nil {
			delete(at, key)
		}
	}
	if config, err = json.Marshal(all); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, config, 0o644); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestGGUFLogits compares all checkpoints with the files that llama.cpp's converter makes of them: those in a folder
// that testdata/gen/ggml/models.py has written.
func TestGGUFLogits(t *testing.T) {
	folder := os.Getenv("INGOT_TEST_GGUF")
	if folder == "" {
		t.Skip("runs with INGOT_TEST_GGUF, a folder that testdata/gen/ggml/models.py --to has written")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.gguf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("INGOT_TEST_GGUF=%s: no files (%v)", folder, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".gguf")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(modeltest.Dir(name), "config.json"))
			if err != nil {
				t.Fatal(err)
			}
			m, err := arch.Detect(data)
			if err != nil || strings.HasSuffix(m.Facts().ModelType, "_assistant") {
				t.Skip("a draft does not run alone")
			}
			reason, differs := ggufsDiffer[name]
			ref := runtimetest.ReadReference(t, name)
			tokens := ref.Tokens
			if g, ok := m.(*types.Gemma3n); ok { // the converter fills the others' embeddings by layer up with zeros
				for i := range tokens {
					tokens[i] %= int32(g.PerLayerVocab)
				}
			}
			a, want, err := logitsOf(t, meant(t, name), tokens)
			if err != nil {
				t.Fatal(err)
			}
			b, got, err := logitsOf(t, file, tokens)
			if err != nil && differs {
				t.Skipf("%s: %v", reason, err)
			}
			if why, ok := ggufsUnknown[m.Facts().ModelType]; ok && errors.Is(err, arch.ErrUnknownArchitecture) {
				t.Skipf("%v: %s", err, why)
			}
			if err != nil {
				t.Fatal(err)
			}
			c := compareRows(ref.Vocab, want, got)
			switch close := c.MaxAbs <= 1e-5*c.Scale; {
			case differs && !close:
				t.Skipf("%s: %.2g deviations", reason, c.MaxAbs/c.Scale)
			case differs:
				t.Errorf("the logits are equal, in spite of %s", reason)
			case !close && slices.Contains(ggufsRound, name) && strings.HasSuffix(folder, "bf16"):
				t.Skipf("the weights are multiplied and rounded: %.2g deviations", c.MaxAbs/c.Scale)
			case !close:
				t.Errorf("the logits differ by %.2g deviations; the configurations: %s", c.MaxAbs/c.Scale, cmp.Diff(a, b,
					cmpopts.EquateApprox(1e-6, 0), cmpopts.EquateEmpty(),
					cmpopts.IgnoreFields(config.Common{}, "Architecture", "DType", "BOS", "EOS", "Prefix")))
			}
		})
	}
}

// logitsOf imports a folder or a file and computes in float32.
func logitsOf(t *testing.T, from string, tokens []int32) (m arch.Model, all []float32, err error) {
	t.Helper()
	st, entry, err := converttest.TryPack(t, from, "model", recipe.Precision{})
	if err != nil {
		return nil, nil, err
	}
	e, err := batch.Open(t.Context(), mlxtest.Open(t), st, entry, runtime.Options{Float32: true})
	if err != nil {
		return nil, nil, err
	}
	defer e.Close()
	err = forward(t.Context(), e.Model(), tokens, nil, func(row []float32) { all = append(all, row...) })
	return e.Model().Processor.Config, all, err
}
