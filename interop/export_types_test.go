package interop

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// mixtures returns the model types of docs/models.md, which is made of the registry, that have experts: the first name
// of each row.
func mixtures(t *testing.T) (list []string) {
	t.Helper()
	page := readFile(t, filepath.Join("..", "docs", "models.md"))
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)`.*also for experts").FindAllStringSubmatch(page, -1) {
		list = append(list, m[1])
	}
	if len(list) < 25 {
		t.Fatalf("docs/models.md has %d model types with experts", len(list))
	}
	return list
}

// checkpointsOf returns checkpoints of a type: as published, as saved, or any.
func checkpointsOf(t *testing.T, modelType string) (list []string) {
	t.Helper()
	for _, kind := range []string{"-published", "-saved", "-default", "-*"} {
		found, err := filepath.Glob(checkpoint(t, modelType+kind))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 && (kind != "-*" || list == nil) {
			list = append(list, filepath.Base(found[0]))
		}
	}
	if len(list) == 0 {
		t.Fatalf("there is no checkpoint of %s", modelType)
	}
	return list
}

// withoutTransformers are checkpoints or exports that transformers does not load, and how it fails.
var withoutTransformers = map[string]string{
	// Types of folders with code of their own, which transformers itself does not have.
	"bailing_moe-published": "does not recognize", "bailing_moe-saved": "does not recognize",
	"deepseek-published": "does not recognize", "deepseek-saved": "does not recognize",
	"minicpm-published": "does not recognize", "minicpm-saved": "does not recognize",

	"longcat_flash-published": "ignore_mismatched_sizes", // its class has weights of experts that do nothing
	"longcat_flash-saved":     "ignore_mismatched_sizes",
	"minimax-published":       "minimax_text_01", // the type as published
	"mistral4-published":      "Unrecognized configuration class",
	"mistral4-saved":          "Unrecognized configuration class",
	"gpt_oss-published":       "quant_method", // its codes are exported as mlx-lm reads them
}

// TestExportMixtures: transformers loads the export of every model type with experts, with the logits of the checkpoint
// that it was made of, bit by bit. This is the long form: setup.sh --full installs it.
func TestExportMixtures(t *testing.T) {
	if testing.Short() {
		t.Skip("needs transformers, which setup.sh installs with --full only")
	}
	u := newUser(t)
	var args []string
	left := maps.Clone(withoutTransformers)
	for _, modelType := range mixtures(t) {
		for _, name := range checkpointsOf(t, modelType) {
			dir := filepath.Join(u.home, name)
			u.create(name, name)
			u.ingot("export", name, dir)
			if reason, ok := left[name]; ok {
				args = append(args, "--fails", reason)
				delete(left, name)
			}
			args = append(args, checkpoint(t, name), dir)
		}
	}
	if len(left) > 0 {
		t.Errorf("not compared: %v", slices.Sorted(maps.Keys(left)))
	}
	transformers(t, args...)
}

// inMLX says what is special about published checkpoints in mlx-lm 0.32.2.
var inMLX = map[string]struct {
	keys  string // of its configuration class that the checkpoint in testdata does not have
	rules []string
	fails string // how it fails to load; "" = it does not
}{
	"afmoe-published":        {keys: `{"layer_types": ["sliding_attention", "full_attention"]}`},
	"cohere2_moe-published":  {fails: "cohere2_moe not supported"},
	"deepseek_v3-published":  {rules: wholeKV, fails: "Received 43 parameters"}, // it drops the head of layer 61 only
	"deepseek_v32-published": {rules: wholeKV},
	"deepseek_v4-published":  {fails: "deepseek_v4 not supported"},
	"exaone_moe-published": {keys: `{"head_dim": 16, "layer_types": ["sliding_attention", "full_attention"],
		"is_moe_layer": [false, true]}`},
	"glm4_moe-published":      {keys: `{"partial_rotary_factor": 0.5}`},
	"glm4_moe_lite-published": {rules: wholeKV},
	"glm_moe_dsa-published": {rules: wholeKV, fails: "Missing 5 parameters", keys: `{"scoring_func": "sigmoid",
		"moe_layer_freq": 1, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}`}, // indexers in all layers
	"gpt_oss-published":        {fails: "parameters not in model"}, // it reads experts as codes only
	"hunyuan_v1_moe-published": {fails: "hunyuan_v1_moe not supported"},
	"llama4-published":         {fails: "list index out of range"}, // its class has at least four layers
	"longcat_flash-published":  {rules: wholeKV},
	"minimax-published":        {fails: "minimax_text_01 not supported"},
	"minimax_m2-published":     {keys: `{"shared_intermediate_size": 0}`},
	"mistral4-published":       {rules: wholeKV},
	"phimoe-published":         {fails: "Missing 9 parameters"}, // its class has biases
	"solar_open-published":     {keys: `{"first_k_dense_replace": 0, "partial_rotary_factor": 1.0}`},
}

// wholeKV leaves a projection as it is that mlx-lm quantizes again, in groups across the heads of these checkpoints.
var wholeKV = []string{"--quantize-rule", "*.kv_b_proj.weight=source"}

// TestExportMixturesMLX: mlx-lm loads the quantized export of every published model type with experts that it runs, and
// computes the logits of the dequantized export. This is the long form: setup.sh --full installs it.
func TestExportMixturesMLX(t *testing.T) {
	if testing.Short() {
		t.Skip("needs mlx-lm, which setup.sh installs with --full only")
	}
	u := newUser(t)
	var args []string
	left := maps.Clone(inMLX)
	for _, modelType := range mixtures(t) {
		name := checkpointsOf(t, modelType)[0]
		special := left[name]
		delete(left, name)
		packed, plain := filepath.Join(u.home, name+"-packed"), filepath.Join(u.home, name+"-plain")
		u.ingot(append([]string{"create", name, withKeys(t, name, special.keys), "-q", "int8-g32"}, special.rules...)...)
		u.ingot("export", name, packed)
		u.ingot("export", name, plain, "--dequantize", "f32")
		if special.fails != "" {
			args = append(args, "--fails", special.fails)
		}
		args = append(args, packed, plain)
	}
	if len(left) > 0 {
		t.Errorf("not compared: %v", slices.Sorted(maps.Keys(left)))
	}
	script(t, u, "mlx_scores.py", args...)
}

// withKeys returns the folder of a checkpoint, or a copy with more keys in its configuration.
func withKeys(t *testing.T, name, keys string) string {
	t.Helper()
	if keys == "" {
		return checkpoint(t, name)
	}
	folder := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(folder, os.DirFS(checkpoint(t, name))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "config.json")
	config := map[string]any{}
	for _, text := range []string{readFile(t, file), keys} {
		if err := json.Unmarshal([]byte(text), &config); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	data, err := json.Marshal(config)
	if err == nil {
		err = os.WriteFile(file, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return folder
}
