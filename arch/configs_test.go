package arch_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/types"
)

// edited returns a checkpoint's configuration with a key replaced, or removed if value is "-". A dot in key descends
// into an object.
func edited(t *testing.T, checkpoint, key, value string) []byte {
	t.Helper()
	for _, c := range checkpoints(t) {
		if c.Name == checkpoint {
			return setKey(t, c.Config, strings.Split(key, "."), value)
		}
	}
	t.Fatalf("no checkpoint %s", checkpoint)
	return nil
}

func setKey(t *testing.T, config json.RawMessage, path []string, value string) json.RawMessage {
	t.Helper()
	m := map[string]json.RawMessage{}
	if len(config) > 0 {
		if err := json.Unmarshal(config, &m); err != nil {
			t.Fatal(err)
		}
	}
	switch {
	case len(path) > 1:
		m[path[0]] = setKey(t, m[path[0]], path[1:], value)
	case value == "-":
		delete(m, path[0])
	default:
		m[path[0]] = json.RawMessage(value)
	}
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestBadConfigs(t *testing.T) {
	for _, c := range []struct{ checkpoint, key, value, want string }{
		{"qwen3", "hidden_size", "-", "hidden_size: missing"},
		{"qwen3", "head_dim", "15", "head_dim = 15: must give an even head size"},
		{"qwen3", "hidden_act", `"relu"`, `hidden_act = "relu": must be "silu"`},
		{"qwen3", "layer_types", `["full_attention"]`, `must have 2 elements, one per layer (it has 1)`},
		{
			"qwen3", "layer_types", `["full_attention","linear_attention"]`,
			`must hold full_attention and sliding_attention only (element 1 is "linear_attention")`,
		},
		{"qwen3", "sliding_window", "0", "sliding_window = 0: must be > 0"},
		{
			"qwen3", "rope_parameters", `{"rope_type":"longrope","short_factor":[1],"long_factor":[1]}`,
			"rope_parameters.short_factor = [1]: must have 8 numbers, one per rotated pair (it has 1)",
		},
		{"qwen3", "rope_parameters", `{"rope_type":"longrope","long_factor":[1]}`, "rope_parameters.short_factor: missing"},
		{
			"qwen3", "rope_parameters", `{"rope_type":"longrope","short_factor":[0]}`,
			"rope_parameters.short_factor = [0]: must be a list of numbers > 0",
		},
		{"qwen3", "rope_parameters", `{"rope_type":"dynamic"}`, "rope_parameters.factor: missing"},
		{
			"qwen3", "rope_parameters", `{"rope_type":"dynamic","factor":2,"partial_rotary_factor":0.1}`,
			"must not be dynamic where 1 channels of a head are rotated",
		},
		{
			"qwen3", "rope_parameters", `{"rope_type":"proportional"}`,
			"must be one of default, linear, llama3, yarn, longrope, dynamic",
		},
		{"qwen3_moe", "num_experts_per_tok", "5", "must be at least the number of experts per token, 5"},
		{"qwen3_moe", "num_local_experts", "5000", "num_local_experts = 5000: must be <= 4096"},
		{"qwen3_moe", "moe_intermediate_size", "-1", "moe_intermediate_size = -1: must be > 0"},
		{"qwen3_moe", "mlp_only_layers", `["a"]`, "mlp_only_layers = [\"a\"]: must be a list of integers"},
		{"qwen3_moe", "decoder_sparse_step", "0", "decoder_sparse_step = 0: must be > 0"},
		{"gemma3", "text_config.hidden_size", "0", "text_config.hidden_size = 0: must be > 0"},
		{"gemma3", "text_config", "3", "text_config = 3: must be an object"},
		{"gemma3", "text_config.rope_parameters", `{"rope_type":"default"}`, "text_config.rope_parameters = "},
		{
			"gemma3", "text_config.rope_parameters.full_attention", `{"rope_type":"linear"}`,
			"text_config.rope_parameters.full_attention.factor: missing",
		},
		{
			"gemma3-published", "text_config.rope_scaling", `{"rope_type":"linear","factor":0}`,
			"text_config.rope_scaling.factor = 0: must be > 0",
		},
		{"gemma3_text", "use_bidirectional_attention", "true", "must be false: encoders are not supported"},
		{"gemma3_text", "query_pre_attn_scalar", "0", "query_pre_attn_scalar = 0: must be > 0"},
		{"gemma3_text", "hidden_size", "-", "hidden_size: missing"},
		{"gemma4-e2b", "text_config.num_kv_shared_layers", "5", "must leave a layer of the type of layer 2 that has keys"},
		{"gemma4-e2b", "text_config.num_kv_shared_layers", "7", "text_config.num_kv_shared_layers = 7: must be <= 6"},
		{"gemma4-e2b", "text_config.per_layer_config", `{"6":{"head_dim":32}}`, "text_config.per_layer_config.6 = "},
		{
			"gemma4-e2b", "text_config.per_layer_config", `{"02":{"head_dim":32}}`,
			"must leave layers of one type alike (layer 5 differs)",
		},
		{"gemma4-e2b", "text_config.per_layer_config", `{"2":{"skip":["mlp"]}}`, "text_config.per_layer_config.2.skip = "},
		{
			"gemma4-e2b", "text_config.per_layer_config", `{"2":{"head_dim":31}}`,
			"text_config.per_layer_config.2.head_dim = 31: must be even",
		},
		{"gemma4-e2b-published", "text_config.global_head_dim", "33", "text_config.global_head_dim = 33: must be even"},
		{
			"gemma4-31b-published", "text_config.num_global_key_value_heads", "3",
			"num_key_value_heads = 3 in layer 2: must divide num_attention_heads = 4",
		},
		{"gemma4-e2b", "text_config.use_bidirectional_attention", `"all"`, "must not be all: encoders are not supported"},
		{
			"gemma4-e2b", "text_config.vocab_size_per_layer_input", "0",
			"text_config.vocab_size_per_layer_input = 0: must be > 0",
		},
		{"gemma4-26b-a4b", "text_config.num_experts", "null", "text_config.num_experts: missing"},
		{"gemma4_assistant", "text_config", "-", "text_config: missing"},
		{
			"gemma4_assistant", "text_config.num_kv_shared_layers", "2",
			"must be num_hidden_layers = 4: an assistant has no keys of its own",
		},
		{"gemma4_unified_assistant", "text_config.hidden_size_per_layer_input", "8", "must be 0 in an assistant"},
		{"gemma4_assistant", "text_config.use_double_wide_mlp", "true", "must be false in an assistant"},
		{"gemma4_assistant", "num_centroids", "7", "num_centroids = 7: must divide the vocabulary's size"},
		{"gemma4_assistant", "centroid_intermediate_top_k", "9", "must be at most num_centroids"},
		{"qwen3_5", "text_config.linear_num_value_heads", "3", "must be a multiple of linear_num_key_heads = 2"},
		{"qwen3_5", "text_config.linear_key_head_dim", "0", "text_config.linear_key_head_dim = 0: must be > 0"},
		{"qwen3_5", "text_config.linear_conv_kernel_dim", "1", "text_config.linear_conv_kernel_dim = 1: must be >= 2"},
		{"qwen3_5", "text_config.linear_conv_kernel_dim", "9", "text_config.linear_conv_kernel_dim = 9: must be <= 8"},
		{"qwen3_5", "text_config.mrope_interleaved", "false", "must be true where the sections have 32 pairs of a head's 2"},
		{"qwen3_5-published", "text_config.attn_output_gate", "false", "must be true"},
		{"qwen3_5-published", "text_config.mtp_use_dedicated_embeddings", "true", "must be false"},
		{"qwen3_5-published", "text_config.rope_parameters.mrope_section", "[1,2]", "must have three numbers"},
		{
			"qwen3_5-published", "text_config.rope_parameters.partial_rotary_factor", "0.05",
			"must leave a pair of 16 channels to rotate",
		},
		{
			"qwen3_5", "vision_config.out_hidden_size", "64",
			"vision_config.out_hidden_size = 64: must be the text model's hidden_size = 32",
		},
		{"qwen3_5", "vision_config.deepstack_visual_indexes", "[1]", "must be empty: deepstack is not supported"},
		{"qwen3_5", "vision_config.num_heads", "3", "must give num_heads = 3 heads of a multiple of 4 channels"},
		{"qwen3_5", "vision_config.patch_size", "[4,8]", "must be the same on all axes"},
		{"qwen3_5", "vision_config.hidden_act", `"relu"`, `vision_config.hidden_act = "relu": must be "gelu_pytorch_tanh"`},
		{"qwen3_5_moe", "text_config.num_experts_per_tok", "9", "must be at least the number of experts per token, 9"},
		{"glm4_moe_lite", "n_group", "3", "n_group = 3: must divide the 4 experts into groups of two or more"},
		{"glm4_moe_lite", "topk_group", "3", "topk_group = 3: must be <= n_group = 2"},
		{
			"glm4_moe_lite", "num_experts_per_tok", "3",
			"num_experts_per_tok = 3: must be <= 2, the experts of the chosen groups",
		},
		{"glm4_moe_lite", "num_key_value_heads", "2", "must be num_attention_heads = 4"},
		{"glm4_moe_lite-published", "topk_method", `"greedy"`, `must be "noaux_tc"`},
		{"glm4_moe_lite", "qk_rope_head_dim", "7", "must give an even head size for rope (it is 7)"},
		{"gemma", "use_bidirectional_attention", "true", "must be false: encoders are not supported"},
		{"gemma", "hidden_act", `"silu"`, `hidden_act = "silu": must be "gelu_pytorch_tanh"`},
		{"gemma2", "attn_logit_softcapping", "0", "attn_logit_softcapping = 0: must be > 0"},
		{"granite", "logits_scaling", "0", "logits_scaling = 0: must be > 0"},
		{"arcee", "hidden_act", `"silu"`, `hidden_act = "silu": must be "relu2"`},
		{"cohere", "logit_scale", "-1", "logit_scale = -1: must be > 0"},
		{"cohere2", "layer_norm_eps", "0", "layer_norm_eps = 0: must be > 0"},
		{"exaone4-published", "sliding_window_pattern", `"LGX"`, "must be a number or a word of L and G"},
		{"glm", "partial_rotary_factor", "2", "partial_rotary_factor = 2: must be > 0 and <= 1"},
		{"hunyuan_v1_dense", "rope_parameters", `{"rope_type":"dynamic","factor":1,"alpha":-1}`, "alpha = -1: must be >= 0"},
		{"hunyuan_v1_dense", "rope_parameters", `{"rope_type":"dynamic","factor":1,"alpha":1e-300}`,
			"alpha = 1e-300: must leave a larger theta"},
		{"hunyuan_v1_dense", "rope_parameters", `{"rope_type":"dynamic","factor":1,"alpha":1e18}`,
			"alpha = 1e18: must leave a smaller theta"},
		{"ministral3", "rope_parameters", `{"llama_4_scaling_beta":-1}`, "llama_4_scaling_beta = -1: must be >= 0"},
		{"apertus", "hidden_act", `"silu"`, `hidden_act = "silu": must be "xielu"`},
		{"nanochat", "rope_parameters", `{"rope_type":"dynamic","factor":2}`, "must be one of default, linear, llama3, yarn"},
		{"nemotron", "norm_eps", "0", "norm_eps = 0: must be > 0"},
		{"olmo", "clip_qkv", "-1", "clip_qkv = -1: must be > 0"},
		{"stablelm", "layer_norm_eps", "0", "layer_norm_eps = 0: must be > 0"},
		{"starcoder2", "norm_epsilon", "0", "norm_epsilon = 0: must be > 0"},
		{"mixtral", "num_experts_per_tok", "5", "must be at least the number of experts per token, 5"},
		{"mixtral", "intermediate_size", "-", "intermediate_size: missing"},
		{"qwen2_moe", "shared_expert_intermediate_size", "0", "shared_expert_intermediate_size = 0: must be > 0"},
		{"granitemoe", "residual_multiplier", "0", "residual_multiplier = 0: must be > 0"},
		{"glm4_moe", "n_group", "3", "must divide the 4 experts into groups of two or more"},
		{"glm4_moe", "topk_group", "2", "must be <= n_group = 1"},
		{"dots1", "n_shared_experts", "-", "n_shared_experts: missing"},
		{"dots1", "scoring_func", `"softmax"`, `must be "sigmoid"`},
		{"bailing_moe", "use_qk_norm", "true", "use_qk_norm = true: must be false"},
		{"bailing_moe", "score_function", `"sigmoid"`, `must be "softmax"`},
		{"bailing_moe", "routed_scaling_factor", "2.5", "must be 1"},
		{"bailing_moe", "n_group", "8", "must be 1"},
		{"minimax_m2", "use_qk_norm", "false", "use_qk_norm = false: must be true"},
		{"exaone_moe-published", "sliding_window_pattern", `"LX"`, "must be a number, or letters L for sliding"},
		{"ernie4_5_moe", "moe_norm_min", "1", "must be from 0 to 1e-6"},
		{"hunyuan_v1_moe", "moe_topk", "[2,1]", "must be the same for all layers (layer 1 has another than layer 0)"},
		{"cohere2_moe", "expert_selection_fn", `"top"`, `must be "softmax" or "sigmoid"`},
		{"cohere2_moe", "shared_expert_combination_strategy", `"max"`, `must be "average" or "sum"`},
		{"gpt_oss", "swiglu_limit", "0", "swiglu_limit = 0: must be > 0"},
		{"gpt_oss", "swiglu_alpha", `"1.7"`, "must be a number"},
		{"gpt_oss", "layer_types", `["sliding_attention"]`, "must have 2 elements"},
		{"afmoe", "n_group", "2", "n_group = 2: must be 1"},
		{"llama4", "moe_layers", "[2]", "must hold numbers of the 2 layers (it has 2)"},
		{"llama4", "attention_chunk_size", "null", "must be a number: some layers attend in chunks"},
		{"llama4", "layer_types", `["sliding_attention","full_attention"]`, "full_attention and chunked_attention only"},
		{"llama4", "no_rope_layers", "[1]", "must have an element per layer, 2 (it has 1)"},
		{"laguna", "gating", "false", `must be true, "per-head" or "per-element"`},
		{"laguna", "num_attention_heads_per_layer", "[4,3]", "hold multiples of num_key_value_heads = 2 (element 1 is 3)"},
		{"laguna", "num_attention_heads_per_layer", "[4]", "must have 2 elements, one per layer (it has 1)"},
		{"laguna", "moe_apply_router_weight_on_input", "true", "must be false: the reference does not implement it"},
		{"mimo_v2_flash-published", "swa_head_dim", "8", "swa_head_dim = 8: must be 16, as of full layers"},
		{"mimo_v2_flash-published", "swa_num_key_value_heads", "3", "must divide num_attention_heads = 4 (it is 3)"},
		{"mimo_v2_flash-published", "hybrid_layer_pattern", "[1]", "must have 2 elements, one per layer (it has 1)"},
		{"mimo_v2_flash-published", "moe_layer_freq", "[1]", "must have 2 elements, one per layer (it has 1)"},
		{"phimoe", "num_experts_per_tok", "3", "must be 2: the router chooses two experts, one after the other"},
		{"phimoe", "router_jitter_noise", "-1", "router_jitter_noise = -1: must be >= 0"},
		{"mamba2", "num_heads", "3", "num_heads = 3: must give heads of 64 channels in all (it gives 3 heads of 16)"},
		{"mamba2", "n_groups", "3", "n_groups = 3: must divide num_heads = 4"},
		{"mamba2", "conv_kernel", "9", "conv_kernel = 9: must be <= 8"},
		{"mamba2", "time_step_limit", "[1,0.5]", "must be the least and the largest step"},
		{"mamba2", "time_step_limit", `[0,{"__float__":"NaN"}]`, "must be the least and the largest step"},
		{"mamba", "time_step_rank", "0", "time_step_rank = 0: must be > 0"},
		{"mamba", "state_size", "5000", "state_size = 5000: must be <= 4096"},
		{"jamba", "attn_layer_offset", "2", "attn_layer_offset = 2: must be < attn_layer_period = 2"},
		{"lfm2", "conv_L_cache", "1", "conv_L_cache = 1: must be >= 2"},
		{"lfm2", "block_ffn_dim_multiplier", "100", "block_ffn_dim_multiplier = 100: must be <= 64"},
		{"lfm2", "layer_types", `["conv","mamba"]`, "must hold conv and full_attention only"},
		{"lfm2_moe", "num_experts_per_tok", "9", "must be at least the number of experts per token, 9"},
		{"bamba", "attn_layer_indices", "[2]", "must be a list of integers from 0 to 1"},
		{"granitemoehybrid", "layer_types", `["mamba","moe"]`, `(element 1 is "moe")`},
		{"granitemoehybrid", "shared_intermediate_size", "0", "shared_intermediate_size = 0: must be > 0"},
		{"falcon_h1", "ssm_multipliers", "[1,2]", "ssm_multipliers = [1,2]: must have 5 numbers"},
		{"nemotron_h", "layers_block_type", `["rnn"]`, `only (element 0 is "rnn")`},
		{"nemotron_h", "layers_block_type", "-", "layers_block_type: missing"},
		{"nemotron_h", "mlp_hidden_act", `"silu"`, `mlp_hidden_act = "silu": must be "relu2"`},
		{"olmo3", "rope_parameters", `{"rope_type":"default"}`, "must hold parameters per layer type"},
		{"phi3", "rope_parameters", `{"rope_type":"llama3"}`, "must be one of default, longrope"},
		{"phi3", "rope_parameters", `{"rope_type":"su","short_factor":[1]}`, "must have 4 numbers, one per rotated pair"},
		{"gpt2", "n_embd", "-", "n_embd: missing"},
		{"gpt2", "n_head", "0", "n_head = 0: must be > 0"},
		{"gpt2", "add_cross_attention", "true", "must be false: there is no encoder to attend to"},
		{"gpt2", "num_key_value_heads", "2", "num_key_value_heads = 2: must be absent"},
		{"gpt2", "activation_function", `"tanh"`, `activation_function = "tanh": must be "gelu"`},
		{"gpt_neox-published", "rotary_pct", "2", "rotary_pct = 2: must be > 0 and <= 1"},
		{"gpt_neox", "head_dim", "32", "head_dim = 32: must be absent"},
		{"smollm3", "no_rope_layers", "[1]", "must have an element per layer, 4 (it has 1)"},
		{"smollm3", "no_rope_layers", "[1,1,1,2]", "must be a list of integers from 0 to 1"},
	} {
		refuses(t, c.checkpoint, c.key, c.value, c.want)
	}
}

// refuses checks that the configuration of a checkpoint with another value of a key is an error of one line with want.
func refuses(t *testing.T, checkpoint, key, value, want string) {
	t.Helper()
	t.Run(checkpoint+"/"+key+"="+value, func(t *testing.T) {
		_, err := arch.Detect(edited(t, checkpoint, key, value))
		if !errors.Is(err, config.ErrBad) {
			t.Fatalf("error %v, want a bad configuration", err)
		}
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %q, want one line with %q", err, want)
		}
	})
}

func TestModelTypesAndClassesAgree(t *testing.T) {
	for _, c := range []struct {
		checkpoint, modelType, class string
		known                        bool
	}{
		{"qwen3_5", `"qwen3_5"`, `["Qwen3_5ForConditionalGeneration"]`, true},
		{"qwen3_5", "-", `["Qwen3_5ForConditionalGeneration"]`, true},
		{"qwen3_5", `"qwen3_5"`, "-", true},
		{"qwen3_5", `"qwen3_5_moe"`, `["Qwen3_5ForConditionalGeneration"]`, false},
		{"gemma3_text", `"gemma3_text"`, `["Gemma3ForSequenceClassification"]`, false},
		{"gemma4-12b", `"gemma4_unified"`, `["Gemma4UnifiedForConditionalGeneration"]`, true},
	} {
		config := setKey(t, edited(t, c.checkpoint, "model_type", c.modelType), []string{"architectures"}, c.class)
		if _, err := arch.Detect(config); c.known != (err == nil) || !c.known &&
			!errors.Is(err, arch.ErrUnknownArchitecture) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestGemma4Layers(t *testing.T) {
	m := publishedModel(t, "gemma-4-E2B").(*types.Gemma4)
	for i, l := range m.Layer {
		want := types.Gemma4Layer{Sliding: i%5 != 4, HeadDim: 256, KVHeads: 1, Intermediate: 6144, KV: i}
		if !want.Sliding {
			want.HeadDim = 512
		}
		if i >= 15 { // these layers share the keys of earlier ones and have an MLP of double width
			want.Intermediate, want.KV = 12288, 13
			if !want.Sliding {
				want.KV = 14
			}
		}
		if l != want || m.Shared(i) != (i >= 15) {
			t.Errorf("layer %d: %+v, want %+v", i, l, want)
		}
	}
	if m.PerLayerHidden != 256 || m.PerLayerVocab != 262144 || m.LogitCap != 30 || m.Window != 512 || m.KEqV {
		t.Errorf("%+v", m)
	}
	e4b := publishedModel(t, "gemma-4-E4B").(*types.Gemma4)
	if e4b.Layer[24].KV != 22 || e4b.Layer[29].KV != 23 || e4b.Layer[23].KV != 23 {
		t.Errorf("E4B shares the keys of %d and %d", e4b.Layer[24].KV, e4b.Layer[29].KV)
	}
	big := publishedModel(t, "gemma-4-31B").(*types.Gemma4)
	if full := big.Layer[5]; full.Sliding || full.KVHeads != 4 || full.HeadDim != 512 || big.Layer[4].KVHeads != 16 ||
		!big.KEqV {
		t.Errorf("31B: %+v beside %+v", full, big.Layer[4])
	}
	if !publishedModel(t, "gemma-4-12B").(*types.Gemma4).Unified {
		t.Error("12B is not unified")
	}
	assistant := publishedModel(t, "gemma-4-12B-assistant").(*types.Gemma4Assistant)
	if l := assistant.Text.Layer[3]; l.KV != -1 || l.HeadDim != 512 || l.KVHeads != 1 || assistant.Centroids != 0 {
		t.Errorf("assistant: %+v", assistant)
	}
}

func TestQwen35Parts(t *testing.T) {
	m := publishedModel(t, "Qwen3.5-27B").(*types.Qwen35)
	if m.Sections != [3]int{11, 11, 10} || !m.Interleaved || m.Rope.PartialFactor != 0.25 || m.Rope.Theta != 1e7 ||
		m.MTP != 1 {
		t.Errorf("%+v", m)
	}
	if m.Full[2] || !m.Full[3] || m.Full[4] {
		t.Errorf("full layers %v", m.Full)
	}
	want := types.QwenVision{Depth: 27, Hidden: 1152, Intermediate: 4304, Heads: 16, Channels: 3, Patch: 16, Temporal: 2,
		Merge: 2, Out: 5120, Positions: 2304, Theta: 10000}
	if *m.Vision != want || m.ImageToken != 248056 || m.VisionStart != 248053 {
		t.Errorf("vision %+v", m.Vision)
	}
	next := publishedModel(t, "Qwen3-Next-80B-A3B").(*types.Qwen35Moe)
	if next.Rope.PartialFactor != 0.25 || next.Experts.Count != 512 || next.Experts.PerToken != 10 ||
		next.SharedIntermediate != 512 || slices.Contains(next.Sparse, false) {
		t.Errorf("qwen3_next: %+v", next.Experts)
	}
	for _, c := range []struct {
		key, value string
		sections   [3]int
	}{
		{"text_config.mrope_sections", "[4,2,1,9]", [3]int{4, 2, 1}},
		{"text_config.rope_parameters", `{"rope_type":"default","dimension_sections":[3,2,1]}`, [3]int{3, 2, 1}},
		{
			"text_config.rope_parameters", `{"rope_type":"default","dimension_sections":[3,2,1],"mrope_section":[2,2,2]}`,
			[3]int{2, 2, 2},
		},
	} {
		m := mustDetect(t, string(edited(t, "qwen3_5", c.key, c.value))).(*types.Qwen35)
		if m.Sections != c.sections {
			t.Errorf("%s = %s: sections %v", c.key, c.value, m.Sections)
		}
	}
	zero := mustDetect(t, string(edited(t, "qwen3_5", "text_config.rope_parameters",
		`{"partial_rotary_factor":0}`))).(*types.Qwen35)
	if zero.Rope.PartialFactor != 0.25 {
		t.Errorf("a partial factor of 0 means %v", zero.Rope.PartialFactor)
	}
}

func TestQwen3Window(t *testing.T) {
	for _, c := range []struct {
		key, value string
		window     int
		sliding    []bool
	}{
		{"use_sliding_window", "true", 8, []bool{false, true}},
		{"use_sliding_window", "false", 0, []bool{false, false}},
		{"sliding_window", "null", 0, []bool{false, false}},
		{"max_window_layers", "0", 8, []bool{true, true}},
		{"max_window_layers", "2", 0, []bool{false, false}},
	} {
		m := mustDetect(t, string(edited(t, "qwen3-published", c.key, c.value))).(*types.Qwen3)
		if m.Window != c.window || !slices.Equal(m.Sliding, c.sliding) {
			t.Errorf("%s = %s: window %d of %v", c.key, c.value, m.Window, m.Sliding)
		}
	}
}

func TestGlmAttentionScale(t *testing.T) {
	m := mustDetect(t, string(edited(t, "glm4_moe_lite", "rope_parameters",
		`{"rope_type":"yarn","rope_theta":1e4,"factor":40,"mscale_all_dim":1.0,`+
			`"original_max_position_embeddings":64}`))).(*types.Glm4MoeLite)
	// 1/sqrt(12+8) times (0.1 ln 40 + 1) squared
	if got := m.AttentionScale(); got < 0.419006 || got > 0.419007 {
		t.Errorf("scale %v", got)
	}
}
