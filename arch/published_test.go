package arch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
)

// published are configurations of published models, with the keys that affect a model's shape, and the models' sizes in
// billions of parameters without towers and optional MTP heads.
var published = []struct {
	name, modelType string
	billions        float64
	config          string
}{
	{"Llama-3.1-8B", "llama", 8.030, `{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":4096,
		"intermediate_size":14336,"max_position_embeddings":131072,"num_attention_heads":32,"num_hidden_layers":32,
		"num_key_value_heads":8,"rms_norm_eps":1e-05,"rope_scaling":{"factor":8.0,"low_freq_factor":1.0,
		"high_freq_factor":4.0,"original_max_position_embeddings":8192,"rope_type":"llama3"},"rope_theta":500000.0,
		"tie_word_embeddings":false,"torch_dtype":"bfloat16","vocab_size":128256}`},
	{"Qwen3-0.6B", "qwen3", 0.596, `{"architectures":["Qwen3ForCausalLM"],"attention_bias":false,"bos_token_id":151643,
		"eos_token_id":151645,"head_dim":128,"hidden_act":"silu","hidden_size":1024,"intermediate_size":3072,
		"max_position_embeddings":40960,"max_window_layers":28,"model_type":"qwen3","num_attention_heads":16,
		"num_hidden_layers":28,"num_key_value_heads":8,"rms_norm_eps":1e-06,"rope_scaling":null,"rope_theta":1000000,
		"sliding_window":null,"tie_word_embeddings":true,"torch_dtype":"bfloat16","use_sliding_window":false,
		"vocab_size":151936}`},
	{"Qwen3-8B", "qwen3", 8.191, `{"architectures":["Qwen3ForCausalLM"],"head_dim":128,"hidden_act":"silu",
		"hidden_size":4096,"intermediate_size":12288,"max_position_embeddings":40960,"max_window_layers":36,
		"model_type":"qwen3","num_attention_heads":32,"num_hidden_layers":36,"num_key_value_heads":8,"rms_norm_eps":1e-06,
		"rope_scaling":{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32768},"rope_theta":1000000,
		"tie_word_embeddings":false,"vocab_size":151936}`},
	{"Qwen3-30B-A3B", "qwen3_moe", 30.532, `{"architectures":["Qwen3MoeForCausalLM"],"decoder_sparse_step":1,
		"head_dim":128,"hidden_act":"silu","hidden_size":2048,"intermediate_size":6144,"max_position_embeddings":40960,
		"max_window_layers":48,"mlp_only_layers":[],"model_type":"qwen3_moe","moe_intermediate_size":768,
		"norm_topk_prob":true,"num_attention_heads":32,"num_experts":128,"num_experts_per_tok":8,"num_hidden_layers":48,
		"num_key_value_heads":4,"rms_norm_eps":1e-06,"rope_scaling":null,"rope_theta":1000000.0,"sliding_window":null,
		"tie_word_embeddings":false,"use_sliding_window":false,"vocab_size":151936}`},
	{"gemma-3-1b", "gemma3", 1.000, `{"architectures":["Gemma3ForCausalLM"],"attn_logit_softcapping":null,
		"bos_token_id":2,"eos_token_id":[1,106],"final_logit_softcapping":null,"head_dim":256,
		"hidden_activation":"gelu_pytorch_tanh","hidden_size":1152,"intermediate_size":6912,"max_position_embeddings":32768,
		"model_type":"gemma3_text","num_attention_heads":4,"num_hidden_layers":26,"num_key_value_heads":1,
		"query_pre_attn_scalar":256,"rms_norm_eps":1e-06,"rope_local_base_freq":10000,"rope_scaling":null,
		"rope_theta":1000000,"sliding_window":512,"sliding_window_pattern":6,"vocab_size":262144}`},
	{"gemma-3-4b", "gemma3", 3.880, `{"architectures":["Gemma3ForConditionalGeneration"],"boi_token_index":255999,
		"eoi_token_index":256000,"eos_token_id":[1,106],"image_token_index":262144,"mm_tokens_per_image":256,
		"model_type":"gemma3","text_config":{"hidden_size":2560,"intermediate_size":10240,"model_type":"gemma3_text",
		"num_hidden_layers":34,"rope_scaling":{"factor":8.0,"rope_type":"linear"},"sliding_window":1024},
		"torch_dtype":"bfloat16","vision_config":{"hidden_size":1152,"image_size":896,"intermediate_size":4304,
		"model_type":"siglip_vision_model","num_hidden_layers":27}}`},
	{"gemma-3-27b", "gemma3", 27.01, `{"architectures":["Gemma3ForConditionalGeneration"],"model_type":"gemma3",
		"text_config":{"head_dim":128,"hidden_size":5376,"intermediate_size":21504,"model_type":"gemma3_text",
		"num_attention_heads":32,"num_hidden_layers":62,"num_key_value_heads":16,"query_pre_attn_scalar":168,
		"rope_scaling":{"factor":8.0,"rope_type":"linear"},"sliding_window":1024},"vision_config":{"hidden_size":1152}}`},
	{"gemma-3n-E2B", "gemma3n", 4.46, `{"architectures":["Gemma3nForConditionalGeneration"],"model_type":"gemma3n",
		"audio_config":{"hidden_size":1536},"vision_config":{"hidden_size":2048},"text_config":{"hidden_size":2048,
		"activation_sparsity_pattern":[0.95,0.95,0.95,0.95,0.95,0.95,0.95,0.95,0.95,0.95,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,
		0,0,0,0],"altup_active_idx":0,"altup_num_inputs":4,"altup_correct_scale":true,"head_dim":256,"intermediate_size":8192,
		"laurel_rank":64,"num_attention_heads":8,"num_hidden_layers":30,"num_key_value_heads":2,"num_kv_shared_layers":10,
		"hidden_size_per_layer_input":256,"rope_local_base_freq":10000.0,"rope_theta":1000000.0,"sliding_window":512,
		"model_type":"gemma3n_text","vocab_size":262400,"vocab_size_per_layer_input":262144}}`},
	{"LFM3-1.7B", "lfm3", 1.73, `{"architectures":["Lfm3ForCausalLM"],"conv_L_cache":7,"conv_bias":false,"head_dim":128,
		"hidden_size":2048,"intermediate_size":7680,"max_position_embeddings":128000,"model_type":"lfm3","norm_eps":1e-05,
		"num_attention_heads":16,"num_hidden_layers":24,"num_key_value_heads":4,"sliding_window":256,
		"tie_word_embeddings":true,"vocab_size":128000}`},
	{"Qwen3.8-Flash-Next", "qwen4_exp", 176, qwen35Published("qwen4_exp", "Qwen4Exp", false, 2560, `"hidden_size":2560,
		"num_hidden_layers":48,"num_attention_heads":24,"num_key_value_heads":2,"linear_num_key_heads":16,
		"linear_num_value_heads":48,"output_gate_type":"sigmoid","num_experts":512,"num_experts_per_tok":10,
		"moe_intermediate_size":640,"shared_expert_intermediate_size":640,"hc_count":4,"hc_lowrank":320,
		"indexer_budget":2048,"indexer_compress_ratio":4,"indexer_head_dim":128,"indexer_kv_heads":1,"indexer_n_heads":4,
		"ple_conv_kernel_size":4,"ple_embed_dim":2560,"ple_layer_ids":[2],"heads_per_ngram":8,"ngram_size":3,
		"make_ngram_vocab_size_divisible_by":128,"ngram_vocab_size_base":20000000,"split_ngram_parts":128`)},
	{"RWKV7-World3-1.5B", "rwkv7", 1.5274, rwkv7Published(2048, 24, 96, 64, 256)},
	{"RWKV7-World3-2.9B", "rwkv7", 2.9477, rwkv7Published(2560, 32, 96, 64, 320)},
	{"recurrentgemma-2b", "recurrent_gemma", 2.68, recurrentGemmaPublished(2560, 26, 10, 15360)},
	{"recurrentgemma-9b", "recurrent_gemma", 8.58, recurrentGemmaPublished(4096, 38, 16, 24576)},
	{"Kimi-Linear-48B-A3B", "kimi_linear", 49.12, `{"architectures":["KimiLinearForCausalLM"],"model_type":"kimi_linear",
		"bos_token_id":163584,"dtype":"bfloat16","eos_token_id":163586,"first_k_dense_replace":1,"head_dim":72,
		"hidden_act":"silu","hidden_size":2304,"intermediate_size":9216,"kv_lora_rank":512,"linear_attn_config":{
		"full_attn_layers":[4,8,12,16,20,24,27],"head_dim":128,"kda_layers":[1,2,3,5,6,7,9,10,11,13,14,15,17,18,19,21,22,
		23,25,26],"num_heads":32,"short_conv_kernel_size":4},"mla_use_nope":true,"model_max_length":1048576,
		"moe_intermediate_size":1024,"moe_layer_freq":1,"moe_renormalize":true,"moe_router_activation_func":"sigmoid",
		"num_attention_heads":32,"num_expert_group":1,"num_experts":256,"num_experts_per_token":8,"num_hidden_layers":27,
		"num_key_value_heads":32,"num_nextn_predict_layers":0,"num_shared_experts":1,"pad_token_id":163839,
		"q_lora_rank":null,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"rms_norm_eps":1e-05,"rope_scaling":null,
		"rope_theta":10000.0,"routed_scaling_factor":2.446,"tie_word_embeddings":false,"topk_group":1,
		"use_grouped_topk":true,"v_head_dim":128,"vocab_size":163840}`},
	{"Zamba2-2.7B", "zamba2", 2.66, zamba2Published(2560, 54, 80, 1, 6, 12, 18, 24, 30, 36, 42, 47, 51)},
	{"Zamba2-7B", "zamba2", 7.36, zamba2Published(3584, 81, 112, 2, 6, 11, 17, 22, 28, 33, 39, 44, 50, 55, 61, 66, 72)},
	{"gemma-4-E2B", "gemma4", 4.65, gemma4Published("gemma4", 35, 5, `"hidden_size":1536,"intermediate_size":6144,
		"num_attention_heads":8,"num_key_value_heads":1,"num_global_key_value_heads":null,"hidden_size_per_layer_input":256,
		"num_kv_shared_layers":20,"use_double_wide_mlp":true,"sliding_window":512,"attention_k_eq_v":false,
		"max_position_embeddings":131072`)},
	{"gemma-4-E4B", "gemma4", 7.52, gemma4Published("gemma4", 42, 6, `"hidden_size":2560,"intermediate_size":10240,
		"num_attention_heads":8,"num_key_value_heads":2,"num_global_key_value_heads":null,"hidden_size_per_layer_input":256,
		"num_kv_shared_layers":18,"use_double_wide_mlp":false,"sliding_window":512,"attention_k_eq_v":false,
		"max_position_embeddings":131072`)},
	{"gemma-4-12B", "gemma4", 11.9, gemma4Published("gemma4_unified", 48, 6, `"hidden_size":3840,
		"intermediate_size":15360,"num_attention_heads":16,"num_key_value_heads":8,"num_global_key_value_heads":1,
		"sliding_window":1024,"attention_k_eq_v":true`)},
	{"gemma-4-26B-A4B", "gemma4", 25.2, gemma4Published("gemma4", 30, 6, `"hidden_size":2816,"intermediate_size":2112,
		"num_attention_heads":16,"num_key_value_heads":8,"num_global_key_value_heads":2,"sliding_window":1024,
		"attention_k_eq_v":true,"hidden_size_per_layer_input":0,"enable_moe_block":true,"num_experts":128,
		"moe_intermediate_size":704,"top_k_experts":8`)},
	{"gemma-4-31B", "gemma4", 30.7, gemma4Published("gemma4", 60, 6, `"hidden_size":5376,"intermediate_size":21504,
		"num_attention_heads":32,"num_key_value_heads":16,"num_global_key_value_heads":4,"sliding_window":1024,
		"attention_k_eq_v":true,"hidden_size_per_layer_input":0,"use_bidirectional_attention":"vision"`)},
	{"gemma-4-E2B-assistant", "gemma4_assistant", 0.078, `{"architectures":["Gemma4AssistantForCausalLM"],
		"backbone_hidden_size":1536,"centroid_intermediate_top_k":32,"model_type":"gemma4_assistant","num_centroids":2048,
		"tie_word_embeddings":true,"use_ordered_embeddings":true,"text_config":{"model_type":"gemma4_text",
		"attention_k_eq_v":false,"global_head_dim":512,"head_dim":256,"hidden_size":256,"hidden_size_per_layer_input":0,
		"intermediate_size":2048,"layer_types":["sliding_attention","sliding_attention","sliding_attention",
		"full_attention"],"num_attention_heads":4,"num_hidden_layers":4,"num_key_value_heads":1,"num_kv_shared_layers":4,
		"use_double_wide_mlp":false,"vocab_size":262144,"vocab_size_per_layer_input":0}}`},
	{"gemma-4-12B-assistant", "gemma4_assistant", 0.42, `{"architectures":["Gemma4UnifiedAssistantForCausalLM"],
		"backbone_hidden_size":3840,"model_type":"gemma4_unified_assistant",
		"text_config":{"model_type":"gemma4_unified_text","attention_k_eq_v":true,"global_head_dim":512,"head_dim":256,
		"hidden_size":1024,"intermediate_size":8192,"layer_types":["sliding_attention","sliding_attention",
		"sliding_attention","full_attention"],"num_attention_heads":16,"num_global_key_value_heads":1,"num_hidden_layers":4,
		"num_key_value_heads":8,"num_kv_shared_layers":4}}`},
	{"Qwen3.5-9B", "qwen3_5", 9.41, qwen35Published("qwen3_5", "Qwen3_5", false, 4096, `"hidden_size":4096,
		"intermediate_size":12288,"num_hidden_layers":32,"num_attention_heads":16,"num_key_value_heads":4,
		"linear_num_key_heads":16,"linear_num_value_heads":32`)},
	{"Qwen3.5-27B", "qwen3_5", 27.36, qwen35Published("qwen3_5", "Qwen3_5", false, 5120, `"hidden_size":5120,
		"intermediate_size":17408,"num_hidden_layers":64,"num_attention_heads":24,"num_key_value_heads":4,
		"linear_num_key_heads":16,"linear_num_value_heads":48`)},
	{"Qwen3.5-35B-A3B", "qwen3_5_moe", 35.11, qwen35Published("qwen3_5_moe", "Qwen3_5Moe", false, 2048,
		`"hidden_size":2048,"num_hidden_layers":40,"num_attention_heads":16,"num_key_value_heads":2,
		"linear_num_key_heads":16,"linear_num_value_heads":32,"num_experts":256,"num_experts_per_tok":8,
		"moe_intermediate_size":512,"shared_expert_intermediate_size":512`)},
	{"Qwen3-Next-80B-A3B", "qwen3_5_moe", 79.67, `{"architectures":["Qwen3NextForCausalLM"],"decoder_sparse_step":1,
		"full_attention_interval":4,"head_dim":256,"hidden_size":2048,"intermediate_size":5120,"linear_conv_kernel_dim":4,
		"linear_key_head_dim":128,"linear_num_key_heads":16,"linear_num_value_heads":32,"linear_value_head_dim":128,
		"max_position_embeddings":262144,"mlp_only_layers":[],"model_type":"qwen3_next","moe_intermediate_size":512,
		"norm_topk_prob":true,"num_attention_heads":16,"num_experts":512,"num_experts_per_tok":10,"num_hidden_layers":48,
		"num_key_value_heads":2,"partial_rotary_factor":0.25,"rms_norm_eps":1e-06,"rope_scaling":null,"rope_theta":10000000,
		"shared_expert_intermediate_size":512,"tie_word_embeddings":false,"vocab_size":151936}`},
	{"GLM-4.7-Flash", "glm4_moe_lite", 29.94, `{"architectures":["Glm4MoeLiteForCausalLM"],"attention_bias":false,
		"dtype":"bfloat16","eos_token_id":[154820,154827,154829],"first_k_dense_replace":1,"hidden_act":"silu",
		"hidden_size":2048,"intermediate_size":10240,"kv_lora_rank":512,"max_position_embeddings":202752,
		"model_type":"glm4_moe_lite","moe_intermediate_size":1536,"n_group":1,"n_routed_experts":64,"n_shared_experts":1,
		"norm_topk_prob":true,"num_attention_heads":20,"num_experts_per_tok":4,"num_hidden_layers":47,
		"num_key_value_heads":20,"num_nextn_predict_layers":1,"partial_rotary_factor":1.0,"q_lora_rank":768,
		"qk_nope_head_dim":192,"qk_rope_head_dim":64,"rms_norm_eps":1e-05,"rope_scaling":null,"rope_theta":1000000,
		"routed_scaling_factor":1.8,"tie_word_embeddings":false,"topk_group":1,"topk_method":"noaux_tc","v_head_dim":256,
		"vocab_size":154880}`},
	{"DeepSeek-V2-Lite", "deepseek_v2", 15.71, `{"architectures":["DeepseekV2ForCausalLM"],"attention_bias":false,
		"aux_loss_alpha":0.001,"bos_token_id":100000,"eos_token_id":100001,"first_k_dense_replace":1,"hidden_act":"silu",
		"hidden_size":2048,"intermediate_size":10944,"kv_lora_rank":512,"max_position_embeddings":163840,
		"model_type":"deepseek_v2","moe_intermediate_size":1408,"moe_layer_freq":1,"n_group":1,"n_routed_experts":64,
		"n_shared_experts":2,"norm_topk_prob":false,"num_attention_heads":16,"num_experts_per_tok":6,
		"num_hidden_layers":27,"num_key_value_heads":16,"pretraining_tp":1,"q_lora_rank":null,"qk_nope_head_dim":128,
		"qk_rope_head_dim":64,"rms_norm_eps":1e-06,"rope_scaling":{"beta_fast":32,"beta_slow":1,"factor":40,
		"mscale":0.707,"mscale_all_dim":0.707,"original_max_position_embeddings":4096,"type":"yarn"},"rope_theta":10000,
		"routed_scaling_factor":1.0,"scoring_func":"softmax","tie_word_embeddings":false,"topk_group":1,
		"topk_method":"greedy","torch_dtype":"bfloat16","v_head_dim":128,"vocab_size":102400}`},
	{"DeepSeek-V2", "deepseek_v2", 235.74, `{"architectures":["DeepseekV2ForCausalLM"],"first_k_dense_replace":1,
		"hidden_size":5120,"intermediate_size":12288,"kv_lora_rank":512,"max_position_embeddings":163840,
		"model_type":"deepseek_v2","moe_intermediate_size":1536,"moe_layer_freq":1,"n_group":8,"n_routed_experts":160,
		"n_shared_experts":2,"norm_topk_prob":false,"num_attention_heads":128,"num_experts_per_tok":6,
		"num_hidden_layers":60,"num_key_value_heads":128,"q_lora_rank":1536,"qk_nope_head_dim":128,"qk_rope_head_dim":64,
		"rms_norm_eps":1e-06,"rope_scaling":{"beta_fast":32,"beta_slow":1,"factor":40,"mscale":1.0,"mscale_all_dim":1.0,
		"original_max_position_embeddings":4096,"type":"yarn"},"rope_theta":10000,"routed_scaling_factor":16.0,
		"scoring_func":"softmax","topk_group":3,"topk_method":"group_limited_greedy","v_head_dim":128,
		"vocab_size":102400}`},
	{"MiniCPM3-4B", "minicpm3", 4.07, `{"architectures":["MiniCPM3ForCausalLM"],"attention_bias":false,"bos_token_id":1,
		"eos_token_id":[2,73440],"hidden_act":"silu","hidden_size":2560,"intermediate_size":6400,"kv_lora_rank":256,
		"max_position_embeddings":32768,"model_type":"minicpm3","num_attention_heads":40,"num_hidden_layers":62,
		"num_key_value_heads":40,"q_lora_rank":768,"qk_nope_head_dim":64,"qk_rope_head_dim":32,"rms_norm_eps":1e-05,
		"scale_depth":1.4,"scale_emb":12,"dim_model_base":256,"torch_dtype":"bfloat16","vocab_size":73448}`},
	{"Youtu-LLM-2B", "youtu", 1.96, `{"architectures":["YoutuForCausalLM"],"attention_bias":false,"hidden_act":"silu",
		"hidden_size":2048,"intermediate_size":6144,"kv_lora_rank":512,"max_position_embeddings":131072,
		"model_type":"youtu_llm","num_attention_heads":16,"num_hidden_layers":32,"num_key_value_heads":16,
		"q_lora_rank":1536,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"rms_norm_eps":1e-06,"rope_interleave":true,
		"rope_theta":1600000,"tie_word_embeddings":true,"v_head_dim":128,"vocab_size":128256}`},
	{"LongCat-Flash-Chat", "longcat_flash", 560.7, `{"architectures":["LongcatFlashForCausalLM"],
		"model_type":"longcat_flash","attention_bias":false,"attention_method":"MLA","expert_ffn_hidden_size":2048,
		"ffn_hidden_size":12288,"hidden_size":6144,"kv_lora_rank":512,"max_position_embeddings":131072,
		"mla_scale_kv_lora":true,"mla_scale_q_lora":true,"moe_topk":12,"n_routed_experts":512,"num_attention_heads":64,
		"num_layers":28,"q_lora_rank":1536,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"rms_norm_eps":1e-05,
		"rope_theta":10000000.0,"routed_scaling_factor":6.0,"v_head_dim":128,"vocab_size":131072,"zero_expert_num":256,
		"zero_expert_type":"identity"}`},
	{"Mistral-Small-4-119B", "mistral4", 118.97, `{"architectures":["Mistral3ForConditionalGeneration"],
		"model_type":"mistral3","image_token_index":10,"vision_config":{"hidden_size":1024},"text_config":{
		"model_type":"mistral4","hidden_size":4096,"intermediate_size":12288,"moe_intermediate_size":2048,
		"num_hidden_layers":36,"num_attention_heads":32,"num_key_value_heads":32,"n_shared_experts":1,
		"n_routed_experts":128,"kv_lora_rank":256,"q_lora_rank":1024,"qk_rope_head_dim":64,"v_head_dim":128,
		"qk_nope_head_dim":64,"num_experts_per_tok":4,"first_k_dense_replace":0,"max_position_embeddings":1048576,
		"rms_norm_eps":1e-06,"tie_word_embeddings":false,"rope_parameters":{"type":"yarn","rope_type":"yarn",
		"rope_theta":10000.0,"factor":128.0,"original_max_position_embeddings":8192,"max_position_embeddings":1048576,
		"beta_fast":32.0,"beta_slow":1.0,"mscale_all_dim":1.0,"mscale":1.0,"llama_4_scaling_beta":0.1},
		"vocab_size":131072}}`},
	{"DeepSeek-V3", "deepseek_v3", 671.03, deepseekV3("deepseek_v3", 163840, 129280, 128, 256, 8, 4, 3, 2.5, 1)},
	{"DeepSeek-V3.2", "deepseek_v32", 671.9, strings.Replace(strings.Replace(
		deepseekV3("deepseek_v32", 163840, 129280, 128, 256, 8, 4, 3, 2.5, 1), "V3For", "V32For", 1),
		`"ep_size"`, `"index_head_dim":128,"index_n_heads":64,"index_topk":2048,"ep_size"`, 1)},
	{"GLM-5", "glm_moe_dsa", 743.9, `{"architectures":["GlmMoeDsaForCausalLM"],"attention_bias":false,"dtype":"bfloat16",
		"ep_size":1,"first_k_dense_replace":3,"head_dim":64,"hidden_act":"silu","hidden_size":6144,"index_head_dim":128,
		"index_n_heads":32,"index_topk":2048,"indexer_rope_interleave":true,"intermediate_size":12288,"kv_lora_rank":512,
		"max_position_embeddings":202752,"moe_intermediate_size":2048,"moe_layer_freq":1,"model_type":"glm_moe_dsa",
		"n_group":1,"n_routed_experts":256,"n_shared_experts":1,"norm_topk_prob":true,"num_attention_heads":64,
		"num_experts_per_tok":8,"num_hidden_layers":78,"num_key_value_heads":64,"num_nextn_predict_layers":1,
		"q_lora_rank":2048,"qk_nope_head_dim":192,"qk_rope_head_dim":64,"rms_norm_eps":1e-05,"rope_parameters":{
		"rope_theta":1000000,"rope_type":"default"},"routed_scaling_factor":2.5,"scoring_func":"sigmoid",
		"tie_word_embeddings":false,"topk_group":1,"topk_method":"noaux_tc","v_head_dim":256,"vocab_size":154880}`},
	{"DeepSeek-V4-Flash", "deepseek_v4", 284.3, `{"architectures":["DeepseekV4ForCausalLM"],"model_type":"deepseek_v4",
		"attention_bias":false,"compress_ratios":[0,0` + strings.Repeat(",4,128", 20) + `,4,0],"compress_rope_theta":160000,
		"expert_dtype":"fp4","hc_eps":1e-06,"hc_mult":4,"hc_sinkhorn_iters":20,"head_dim":512,"hidden_act":"silu",
		"hidden_size":4096,"index_head_dim":128,"index_n_heads":64,"index_topk":512,"max_position_embeddings":1048576,
		"moe_intermediate_size":2048,"n_routed_experts":256,"n_shared_experts":1,"norm_topk_prob":true,
		"num_attention_heads":64,"num_experts_per_tok":6,"num_hash_layers":3,"num_hidden_layers":43,
		"num_key_value_heads":1,"num_nextn_predict_layers":1,"o_groups":8,"o_lora_rank":1024,"q_lora_rank":1024,
		"qk_rope_head_dim":64,"rms_norm_eps":1e-06,"rope_scaling":{"beta_fast":32,"beta_slow":1,"factor":16,
		"original_max_position_embeddings":65536,"type":"yarn"},"rope_theta":10000,"routed_scaling_factor":1.5,
		"scoring_func":"sqrtsoftplus","sliding_window":128,"swiglu_limit":10.0,"tie_word_embeddings":false,
		"topk_method":"noaux_tc","vocab_size":129280}`},
	{"Kimi-K2-Instruct", "deepseek_v3", 1026.4, deepseekV3("kimi_k2", 131072, 163840, 64, 384, 1, 1, 1, 2.827, 0)},
}

func deepseekV3(modelType string, context, vocab, heads, experts, groups, top, dense int, scaling float64, next int,
) string {
	return fmt.Sprintf(`{"architectures":["DeepseekV3ForCausalLM"],"attention_bias":false,"model_type":"%s",
		"max_position_embeddings":%d,"vocab_size":%d,"num_attention_heads":%d,"num_key_value_heads":%[4]d,
		"n_routed_experts":%d,"n_group":%d,"topk_group":%d,"first_k_dense_replace":%d,"routed_scaling_factor":%v,
		"num_nextn_predict_layers":%d,"ep_size":1,"hidden_act":"silu","hidden_size":7168,"intermediate_size":18432,
		"kv_lora_rank":512,"moe_intermediate_size":2048,"moe_layer_freq":1,"n_shared_experts":1,"norm_topk_prob":true,
		"num_experts_per_tok":8,"num_hidden_layers":61,"q_lora_rank":1536,"qk_nope_head_dim":128,"qk_rope_head_dim":64,
		"quantization_config":{"activation_scheme":"dynamic","fmt":"e4m3","quant_method":"fp8",
		"weight_block_size":[128,128]},"rms_norm_eps":1e-06,"rope_scaling":{"beta_fast":32,"beta_slow":1,"factor":40,
		"mscale":1.0,"mscale_all_dim":1.0,"original_max_position_embeddings":4096,"type":"yarn"},"rope_theta":10000,
		"scoring_func":"sigmoid","tie_word_embeddings":false,"topk_method":"noaux_tc","torch_dtype":"bfloat16",
		"v_head_dim":128}`,
		modelType, context, vocab, heads, experts, groups, top, dense, scaling, next)
}

// gemma4Published returns the configuration of a multimodal Gemma 4 where every n-th layer is full.
func gemma4Published(modelType string, layers, n int, text string) string {
	kinds := make([]string, layers)
	for i := range kinds {
		kinds[i] = `"sliding_attention"`
		if (i+1)%n == 0 {
			kinds[i] = `"full_attention"`
		}
	}
	class := map[string]string{
		"gemma4": "Gemma4ForConditionalGeneration", "gemma4_unified": "Gemma4UnifiedForConditionalGeneration",
	}[modelType]
	return fmt.Sprintf(`{"architectures":["%s"],"model_type":"%s","dtype":"bfloat16","tie_word_embeddings":true,
		"image_token_id":258880,"vision_config":{"hidden_size":768},"text_config":{"model_type":"%s_text",
		"attention_bias":false,"final_logit_softcapping":30.0,"global_head_dim":512,"head_dim":256,
		"hidden_activation":"gelu_pytorch_tanh","num_hidden_layers":%d,"rms_norm_eps":1e-06,
		"rope_parameters":{"full_attention":{"partial_rotary_factor":0.25,"rope_theta":1000000.0,
		"rope_type":"proportional"},"sliding_attention":{"rope_theta":10000.0,"rope_type":"default"}},
		"tie_word_embeddings":true,"vocab_size":262144,"vocab_size_per_layer_input":262144,
		"layer_types":[%s],%s}}`, class, modelType, modelType, layers, strings.Join(kinds, ","), text)
}

func qwen35Published(modelType, class string, tied bool, hidden int, text string) string {
	return fmt.Sprintf(`{"architectures":["%sForConditionalGeneration"],"model_type":"%s","image_token_id":248056,
		"video_token_id":248057,"vision_start_token_id":248053,"vision_end_token_id":248054,"tie_word_embeddings":%v,
		"text_config":{"model_type":"%s_text","attention_bias":false,"attn_output_gate":true,"dtype":"bfloat16",
		"eos_token_id":248044,"full_attention_interval":4,"head_dim":256,"hidden_act":"silu","linear_conv_kernel_dim":4,
		"linear_key_head_dim":128,"linear_value_head_dim":128,"max_position_embeddings":262144,"mlp_only_layers":[],
		"mtp_num_hidden_layers":1,"mtp_use_dedicated_embeddings":false,"rms_norm_eps":1e-06,"vocab_size":248320,
		"mamba_ssm_dtype":"float32","rope_parameters":{"mrope_interleaved":true,"mrope_section":[11,11,10],
		"rope_type":"default","rope_theta":10000000,"partial_rotary_factor":0.25},%s},
		"vision_config":{"deepstack_visual_indexes":[],"depth":27,"hidden_act":"gelu_pytorch_tanh","hidden_size":1152,
		"in_channels":3,"intermediate_size":4304,"model_type":"%s","num_heads":16,"num_position_embeddings":2304,
		"out_hidden_size":%d,"patch_size":16,"spatial_merge_size":2,"temporal_patch_size":2}}`,
		class, modelType, tied, modelType, text, modelType, hidden)
}

// rwkv7Published has the low ranks of decays and rates, values, and gates.
func rwkv7Published(hidden, layers, rank, values, gates int) string {
	return fmt.Sprintf(`{"architectures":["RWKV7ForCausalLM"],"model_type":"rwkv7","attn":null,"a_low_rank_dim":%d,
		"decay_low_rank_dim":%d,"v_low_rank_dim":%d,"gate_low_rank_dim":%d,"head_dim":64,"hidden_act":"sqrelu",
		"hidden_ratio":4.0,"hidden_size":%d,"intermediate_size":%d,"norm_bias":true,"norm_eps":1e-05,"norm_first":true,
		"num_hidden_layers":%d,"tie_word_embeddings":false,"torch_dtype":"bfloat16","vocab_size":65536}`,
		rank, rank, values, gates, hidden, 4*hidden, layers)
}

// recurrentGemmaPublished has the width of both halves of the feed-forward block.
func recurrentGemmaPublished(hidden, layers, heads, intermediate int) string {
	return fmt.Sprintf(`{"architectures":["RecurrentGemmaForCausalLM"],"model_type":"recurrent_gemma",
		"attention_bias":false,"attention_window_size":2048,"block_types":["recurrent","recurrent","attention"],
		"bos_token_id":2,"conv1d_width":4,"eos_token_id":1,"head_dim":256,"hidden_activation":"gelu_pytorch_tanh",
		"hidden_size":%d,"intermediate_size":%d,"logits_soft_cap":30.0,"lru_width":%[1]d,"num_attention_heads":%[3]d,
		"num_hidden_layers":%[4]d,"num_key_value_heads":1,"partial_rotary_factor":0.5,"rms_norm_eps":1e-06,
		"rope_theta":10000.0,"torch_dtype":"bfloat16","vocab_size":256000}`, hidden, intermediate, heads, layers)
}

// zamba2Published has the layers with a transformer block, of which there are two.
func zamba2Published(hidden, layers, heads, groups int, hybrid ...int) string {
	kinds := make([]string, layers)
	for i := range kinds {
		kinds[i] = `"mamba"`
		if slices.Contains(hybrid, i) {
			kinds[i] = `"hybrid"`
		}
	}
	return fmt.Sprintf(`{"architectures":["Zamba2ForCausalLM"],"model_type":"zamba2","adapter_rank":128,
		"add_bias_linear":false,"attention_head_dim":%d,"attention_hidden_size":%d,"hidden_size":%d,
		"intermediate_size":%d,"kv_channels":%d,"layers_block_type":[%s],"mamba_d_conv":4,"mamba_d_state":64,
		"mamba_expand":2,"mamba_headdim":64,"mamba_ngroups":%d,"max_position_embeddings":4096,"n_mamba_heads":%d,
		"num_attention_heads":32,"num_hidden_layers":%d,"num_key_value_heads":32,"num_mem_blocks":2,"rms_norm_eps":1e-05,
		"rope_theta":10000,"time_step_floor":0.0001,"time_step_limit":null,"time_step_max":0.1,"time_step_min":0.001,
		"use_conv_bias":true,"use_mem_rope":true,"use_shared_attention_adapter":false,"vocab_size":32000}`,
		hidden/16, 2*hidden, hidden, 4*hidden, hidden/32, strings.Join(kinds, ","), groups, heads, layers)
}

func publishedModel(t testing.TB, name string) arch.Model {
	t.Helper()
	for _, p := range published {
		if p.name == name {
			m, err := arch.Detect([]byte(p.config))
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
	}
	t.Fatalf("no configuration %s", name)
	return nil
}

func TestPublishedSizes(t *testing.T) {
	for _, p := range published {
		t.Run(p.name, func(t *testing.T) {
			facts := publishedModel(t, p.name).Facts()
			if facts.ModelType != p.modelType {
				t.Errorf("model type %s, want %s", facts.ModelType, p.modelType)
			}
			if got := float64(facts.Params) / 1e9; got < 0.99*p.billions || got > 1.01*p.billions {
				t.Errorf("%.3f billion parameters, want about %v", got, p.billions)
			}
		})
	}
}
