package adapter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"

	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// config holds the keys of adapter_config.json that affect the result (PEFT 0.21, LoraConfig).
type config struct {
	Rank    float64  `json:"r"`
	Alpha   float64  `json:"lora_alpha"`
	RSLoRA  bool     `json:"use_rslora"`
	Ranks   patterns `json:"rank_pattern"`
	Alphas  patterns `json:"alpha_pattern"`
	Kind    string   `json:"peft_type"`
	Saved   []string `json:"modules_to_save"`
	Bias    string   `json:"bias"`
	Init    any      `json:"init_lora_weights"`
	Targets any      `json:"target_modules"`
	Tying   bool     `json:"ensure_weight_tying"`
}

// supportedKeys are the keys that config reads, and those that do not affect the merged weights: they concern training
// or loading, or repeat what the tensors' names show.
var supportedKeys = []string{
	"r", "lora_alpha", "use_rslora", "rank_pattern", "alpha_pattern", "peft_type", "modules_to_save", "bias",
	"init_lora_weights", "target_modules", "task_type", "auto_mapping", "peft_version", "base_model_name_or_path",
	"revision", "inference_mode", "exclude_modules", "lora_dropout", "layers_to_transform", "layers_pattern",
	"megatron_config", "megatron_core", "loftq_config", "eva_config", "corda_config", "lora_ga_config",
	"qalora_group_size", "ensure_weight_tying", "runtime_config", "parent_library", "ephemeral_gpu_offload",
}

// features are the common names of unsupported keys' features, for messages.
var features = map[string]string{
	"use_dora": "DoRA", "fan_in_fan_out": "transposed weights", "lora_bias": "biases of its own",
	"use_qalora": "QALoRA", "layer_replication": "repeated layers",
	"target_parameters":       "parameters other than the weights of linear layers",
	"trainable_token_indices": "single tokens of an embedding",
	"alora_invocation_tokens": "an adapter that is active in a part of the text",
}

// supportedInits are the initializations that leave the base model's weights unchanged.
var supportedInits = []any{nil, true, false, "gaussian", "eva", "orthogonal"}

func parse(data []byte) (config, error) {
	var all map[string]any
	if err := pyjson.Unmarshal(data, &all); err != nil {
		return config{}, err
	}
	if _, ok := all["peft_type"]; !ok {
		hint := ""
		if _, ok := all["fine_tune_type"]; ok {
			hint = ": it is an adapter of mlx-lm; merge it with mlx-lm's fuse command"
		}
		return config{}, fmt.Errorf("it has no peft_type%s", hint)
	}
	c := config{Rank: 8, Alpha: 8, Bias: "none", Init: true}
	if err := pyjson.Unmarshal(data, &c); err != nil {
		return config{}, err
	}
	if c.Kind != "LORA" {
		return config{}, fmt.Errorf("peft_type is %q: only LORA can be merged", clip.Line(c.Kind, maxQuoted))
	}
	for _, key := range slices.Sorted(keys(all)) {
		if v := all[key]; !slices.Contains(supportedKeys, key) && !empty(v) {
			what := features[key]
			if what == "" {
				what = "an unknown feature"
			}
			return config{}, fmt.Errorf("%s is set: %s cannot be merged; merge_and_unload of the Python package peft may do it",
				clip.Line(key, maxQuoted), what)
		}
	}
	if !slices.Contains(supportedInits, c.Init) {
		return config{}, fmt.Errorf("init_lora_weights is %q, which also changes the base model's weights; "+
			"merge it with merge_and_unload of the Python package peft", clip.Line(fmt.Sprint(c.Init), maxQuoted))
	}
	if !slices.Contains([]string{"none", "all", "lora_only"}, c.Bias) {
		return config{}, fmt.Errorf("bias is %q, want none, all or lora_only", clip.Line(c.Bias, maxQuoted))
	}
	return c, nil
}

func keys(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// scale returns a module's rank and the factor of its product.
func (c config) scale(module string) (rank int64, scale float64, err error) {
	r, alpha := c.Ranks.of(module, c.Rank), c.Alphas.of(module, c.Alpha)
	if r < 1 || r != math.Trunc(r) || r > 1<<20 {
		return 0, 0, fmt.Errorf("its rank is %v", r)
	}
	if c.RSLoRA {
		scale = alpha / math.Sqrt(r)
	} else {
		scale = alpha / r
	}
	if f := float32(scale); math.IsInf(float64(f), 0) || f != f {
		return 0, 0, fmt.Errorf("its lora_alpha is %v", alpha)
	}
	return int64(r), scale, nil
}

// patterns map module names to values by regular expression. The first match wins.
type patterns []pattern

type pattern struct {
	match *regexp.Regexp
	value float64
}

func (p patterns) of(module string, other float64) float64 {
	for _, one := range p {
		if one.match.MatchString(module) {
			return one.value
		}
	}
	return other
}

const maxPatterns = 10000

// UnmarshalJSON keeps the order of the keys.
func (p *patterns) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("a pattern map is not an object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		var v float64
		if err := d.Decode(&v); err != nil {
			return fmt.Errorf("pattern %q: %w", clip.Line(name, maxQuoted), err)
		}
		// PEFT matches the end of the name, after a dot.
		re, err := regexp.Compile(`^(?:.*\.)?(?:` + name + `)$`)
		if err != nil {
			return fmt.Errorf("pattern %q: %v", clip.Line(name, maxQuoted), err)
		}
		if *p = append(*p, pattern{re, v}); len(*p) > maxPatterns {
			return fmt.Errorf("more than %d patterns", maxPatterns)
		}
	}
	return nil
}

// maxQuoted limits the characters of a quotation from a file.
const maxQuoted = 80
