package arch_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/arch/types"
)

// Configurations of types whose classes are beside their checkpoints, of variants that compute something else.
func TestVariantsOfOthersAreRefused(t *testing.T) {
	for _, c := range []struct{ checkpoint, key, value, want string }{
		{"baichuan", "max_position_embeddings", "-", "ALiBi"},
		{"chatglm", "rmsnorm", "false", "rmsnorm = false: must be true"},
		{"chatglm", "original_rope", "false", "original_rope = false: must be true"},
		{"chatglm", "post_layer_norm", "false", "must be true"},
		{"chatglm", "apply_residual_connection_post_layernorm", "true", "must be false"},
		{"chatglm", "padded_vocab_size", "-1", "padded_vocab_size = -1"},
		{"chatglm", "kv_channels", "6", "kv_channels = 6: must be a multiple of 4"},
		{"qwen", "intermediate_size", "97", "intermediate_size = 97: must be even"},
		{"qwen", "kv_channels", "16", "kv_channels = 16: must be hidden_size/num_attention_heads = 8"},
		{"qwen", "layer_norm_epsilon", "0", "layer_norm_epsilon = 0"},
		{"internlm2", "rope_scaling", `{"rope_type":"yarn","factor":2.0}`, "rope_type"},
		{"exaone", "activation_function", `"relu"`, "activation_function"},
		{"minicpm", "scale_emb", "0", "scale_emb = 0"},
		{"minicpm", "sparse_config", `{"topk":64}`, "sparse_config.dense_len: missing"},
		{"deepseek", "scoring_func", `"sigmoid"`, `scoring_func = "sigmoid": must be "softmax"`},
		{"bailing_moe", "norm_head", "true", "norm_head = true: must be false"},
		{"falcon", "alibi", "true", "alibi = true: must be false"},
		{"falcon-groups", "parallel_attn", "false", "parallel_attn = false: must be true"},
		{"falcon-groups", "num_kv_heads", "3", "num_kv_heads = 3: must divide"},
		{"opt", "do_layer_norm_before", "false", "do_layer_norm_before = false: must be true"},
		{"opt", "_remove_final_layer_norm", "true", "must be false"},
		{"opt", "word_embed_proj_dim", "16", "word_embed_proj_dim = 16: must be hidden_size"},
		{"gptj", "rotary_dim", "3", "rotary_dim = 3: must be even"},
		{"gptj", "rotary_dim", "10", "rotary_dim = 10"},
		{"gpt_bigcode", "add_cross_attention", "true", "add_cross_attention = true: must be false"},
		{"phi-msft", "n_head", "3", "n_embd = 32: must be a multiple of"},
		{"phi-msft", "activation_function", `"tanh"`, "activation_function"},
		{"nemotron-nas", "block_configs", "[]", "must have an element per layer, 2 (it has 0)"},
		{"nemotron-nas", "block_configs", "[1,{}]", "must hold objects"},
		{"nemotron-nas", "block_configs", `[{"attention":{"no_op":true}},{}]`, "block_configs[0].ffn: missing"},
		{"nemotron-nas", "block_configs", nasBlocks(`"n_heads_in_group":3`, `"ffn_mult":1`),
			"block_configs[1].attention.n_heads_in_group = 3: must divide num_attention_heads = 4"},
		{"nemotron-nas", "block_configs", nasBlocks(`"no_op":true,"replace_with_linear":true`, `"ffn_mult":1`),
			"block_configs[1].attention.replace_with_linear = true: must be false"},
		{"nemotron-nas", "block_configs", nasBlocks(`"n_heads_in_group":2,"window_length":8`, `"ffn_mult":1`),
			"block_configs[1].attention.window_length = 8: must be null"},
		{"nemotron-nas", "block_configs", nasBlocks(`"no_op":true`, `"ffn_mult":1e9`), "block_configs[1].ffn.ffn_mult"},
		{"nemotron-nas", "block_configs", nasBlocks(`"no_op":true`, `"no_op":false`),
			"block_configs[1].ffn.ffn_mult: missing"},
		{"bailing_moe", "norm_softmax", "true", "norm_softmax = true: must be false"},
	} {
		_, err := arch.Detect(edited(t, c.checkpoint, c.key, c.value))
		if !errors.Is(err, config.ErrBad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s = %s: %v, want %q", c.checkpoint, c.key, c.value, err, c.want)
		}
	}
}

// nasBlocks returns two layers, the second with these keys.
func nasBlocks(attention, ffn string) string {
	return `[{"attention":{"no_op":true},"ffn":{"no_op":true}},{"attention":{` + attention + `},"ffn":{` + ffn + `}}]`
}

// The context ends where a model computes something else with longer texts.
func TestContextsOfOthers(t *testing.T) {
	for _, c := range []struct {
		checkpoint, key, value string
		want                   int64
	}{
		{"qwen", "seq_length", "16", 16},
		{"qwen", "seq_length", "-", 128},
		{"minicpm", "sparse_config", `{"dense_len":16}`, 16},
		{"minicpm", "sparse_config", "null", 128},
		{"chatglm", "seq_length", "16", 16},
	} {
		m, err := arch.Detect(edited(t, c.checkpoint, c.key, c.value))
		if err != nil {
			t.Errorf("%s: %s = %s: %v", c.checkpoint, c.key, c.value, err)
		} else if got := m.Facts().Context; got != c.want {
			t.Errorf("%s: %s = %s: context %d, want %d", c.checkpoint, c.key, c.value, got, c.want)
		}
	}
	config := edited(t, "qwen", "use_dynamic_ntk", "false")
	config = setKey(t, setKey(t, config, []string{"use_logn_attn"}, "false"), []string{"seq_length"}, "16")
	if m, err := arch.Detect(config); err != nil || m.Facts().Context != 128 {
		t.Errorf("qwen without other ropes: %v, want a context of 128", err)
	}
}

// InternLM's first rope and the biases of its types are keys of their own.
func TestInternLMSpellings(t *testing.T) {
	rename := func(modelType, class string, more ...string) *types.Llama {
		config := edited(t, "llama", "model_type", `"`+modelType+`"`)
		config = setKey(t, config, []string{"architectures"}, `["`+class+`"]`)
		config = setKey(t, config, []string{"rope_parameters"}, "-")
		for i := 0; i < len(more); i += 2 {
			config = setKey(t, config, []string{more[i]}, more[i+1])
		}
		m, err := arch.Detect(config)
		if err != nil {
			t.Fatalf("%s %v: %v", modelType, more, err)
		}
		return m.(*types.Llama)
	}
	first := func(more ...string) *types.Llama { return rename("internlm", "InternLMForCausalLM", more...) }
	third := func(more ...string) *types.Llama { return rename("internlm3", "InternLM3ForCausalLM", more...) }
	if m := first(); !m.AttentionBias || !m.OutputBias || m.MLPBias || m.Rope.Type != config.RopeDefault {
		t.Errorf("internlm: %+v", m)
	}
	if m := first("bias", "false", "rotary", `{"base":5000,"type":"dynamic"}`); m.AttentionBias || m.OutputBias ||
		m.Rope.Type != config.RopeDynamic || m.Rope.Factor != 1 || m.Rope.Theta != 5000 {
		t.Errorf("internlm without biases: %+v", m)
	}
	if m := first("rotary", `{"base":5000,"type":"origin"}`); m.Rope.Type != config.RopeDefault || m.Rope.Theta != 5000 {
		t.Errorf("internlm with its first rope: %+v", m.Rope)
	}
	if m := third("qkv_bias", "true"); !m.AttentionBias || m.OutputBias || m.MLPBias {
		t.Errorf("internlm3 with qkv_bias: %+v", m)
	}
	if m := third("bias", "true"); m.AttentionBias || !m.OutputBias || !m.MLPBias {
		t.Errorf("internlm3 with bias: %+v", m)
	}
}

// Exports have the tensors of the publication, which the class beside it reads, and nothing else.
func TestPublishedNamesAreWritten(t *testing.T) {
	of := []string{
		"bailing_moe", "baichuan", "chatglm", "deepseek", "exaone", "falcon", "falcon-groups", "falcon-sequential",
		"gpt_bigcode", "gpt_bigcode-heads", "gptj", "internlm2", "minicpm", "minicpm_moe", "nemotron-nas", "opt", "orion",
		"phi", "phi-msft", "qwen",
	}
	for _, c := range checkpoints(t) {
		if !slices.Contains(of, c.Name) {
			continue
		}
		of = slices.DeleteFunc(of, func(name string) bool { return name == c.Name })
		var config struct {
			ModelType string `json:"model_type"`
		}
		if err := json.Unmarshal(c.Config, &config); err != nil {
			t.Fatal(err)
		}
		tab := c.detect(t).Table()
		match, err := tab.Check(c.have(t))
		if err != nil {
			t.Fatal(err)
		}
		var have []table.TensorInfo
		want := map[string][]int64{}
		for _, m := range match.Tensors {
			have = append(have, table.TensorInfo{Name: m.Spec.Name, DType: "BF16", Shape: m.Spec.Shape})
		}
		for _, h := range c.have(t) {
			if !slices.ContainsFunc(match.Dropped, func(d table.Dropped) bool { return d.Name == h.Name }) {
				want[h.Name] = h.Shape
			}
		}
		written, err := tab.Write(have, table.WriteOptions{Style: table.HuggingFace,
			Published: arch.Published(config.ModelType)})
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		got := map[string][]int64{}
		for _, w := range written {
			got[w.Name] = w.Shape
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", c.Name, diff)
		}
	}
	if len(of) > 0 {
		t.Errorf("no checkpoints %v", of)
	}
}
