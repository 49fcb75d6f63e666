package arch

import (
	"slices"
	"strings"
)

// idleKeys are keys of config.json without influence on a forward pass, for one reason.
type idleKeys struct {
	why   string
	types []string // model types that it is true of; nil = all
	keys  []string
}

// idle lists the keys without influence. A test requires that every key that the reference reads is read here, refused,
// or in this list; all other keys that a type does not read are noted when a checkpoint is imported.
var idle = []idleKeys{
	{"it says what the file is, or where it came from", nil, strings.Fields(`
		architectures auto_map finetuning_task model_type name_or_path task_specific_params text_config tokenizer_class
		transformers_version unsloth_fixed unsloth_version
		for_llm_compressor inference_runner is_llama_config tokenizer_type transformers.js_config
		validate_runner_input`)},
	{"it is the type of the weights, or how they are packed, which the tensors say", nil, strings.Fields(`
		compression_config dtype expert_dtype mamba_ssm_cache_dtype quantization quantization_config torch_dtype
		use_bfloat16
		bf16 fp16 fp32 mamba_ssm_dtype moe_router_dtype params_dtype`)},
	{"only training uses it", nil, strings.Fields(`
		altup_coef_clip embedding_initializer_range init_std initializer_factor initializer_range input_jitter_noise
		layerdrop linear_a_log_max linear_a_log_min linear_dt_init_floor linear_dt_max linear_dt_min mamba_dt_init_floor
		rescale_prenorm_residual router_aux_loss_coef time_step_floor time_step_init_scheme time_step_rank time_step_scale
		w_init_variance_scale final_w_init_variance_scale z_loss_coefficient aux_loss_alpha seq_aux
		output_router_logits gradient_checkpointing
		ignore_index z_loss_weight mup_denominator pruned_heads`)},
	{"the range of initial time steps", []string{"falcon_h1", "mamba", "mamba2", "jamba"}, strings.Fields(`
		mamba_dt_max mamba_dt_min time_step_max time_step_min`)},
	{"the largest initial time step", []string{"nemotron_h", "zamba2", "bamba", "granitemoehybrid"}, strings.Fields(`
		mamba_dt_max time_step_max`)},
	{"it is a token, or decides how text is sampled, which is not part of a forward pass", nil, strings.Fields(`
		bad_words_ids begin_suppress_tokens bos_token bos_token_id decoder_start_token_id diversity_penalty do_sample
		early_stopping encoder_no_repeat_ngram_size eod_token_id eos_token eos_token_id exponential_decay_length_penalty
		forced_bos_token_id forced_eos_token_id length_penalty max_length max_new_tokens min_length no_repeat_ngram_size
		num_beam_groups num_beams num_return_sequences pad_token pad_token_id remove_invalid_values repetition_penalty
		sep_token_id suppress_tokens temperature top_k top_p typical_p unk_token_id
		boa_token_id eoa_token_id eoa_token_index cache_implementation max_tokenizer_truncation`)},
	{"it decides what the library returns", nil, strings.Fields(`
		num_logits_to_keep output_attentions output_hidden_states output_scores return_dict return_dict_in_generate
		torchscript use_cache`)},
	{"it belongs to encoders, or to heads that classify", nil, strings.Fields(`
		chunk_size_feed_forward cross_attention_hidden_size id2label is_decoder is_encoder_decoder label2id num_labels
		prefix problem_type summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj
		n_special predict_special_tokens`)},
	{"it is how a sum is computed, not what the sum is", nil, strings.Fields(`
		attention_softmax_in_fp32 attn_implementation block_size chunk_size mamba_chunk_size moe_shared_expert_overlap
		pretraining_tp reorder_and_upcast_attn residual_in_fp32 scale_attention_softmax_in_fp32 use_associative_scan
		use_mamba_kernels use_mambapy use_mem_eff_path
		apply_query_key_layer_scaling context_window_size ep_size pad_key_length prefill_chunk_size
		tensor_parallel_shards use_flash_attn`)},
	{"the tensors say it by their names and shapes", nil, strings.Fields(`
		expand mamba_expand qk_head_dim
		n_ctx padded_vocab_size use_qk_norm use_routing_bias`)},
	{"the tensors say it by their names and shapes", []string{"zamba2"}, strings.Fields(`
		attention_head_dim attention_hidden_size head_dim hybrid_layer_ids use_conv_bias`)},
	{"the tensors say it by their names and shapes", []string{"deepseek_v4"}, []string{"mlp_bias"}},
	{"attention has head sizes of its own", []string{
		"deepseek_v2", "deepseek_v3", "deepseek_v32", "glm4_moe_lite", "glm_moe_dsa", "kimi_linear", "longcat_flash",
		"minicpm3", "mistral4", "youtu",
	}, []string{"head_dim"}},
	{"heads have hidden_size / num_attention_heads channels, or the reference fails", []string{"gpt_neox", "phi"},
		[]string{"head_dim"}},
	{"all layers have experts, whose width has a key of its own", []string{"qwen4_exp", "solar_open"},
		[]string{"intermediate_size"}},
	{"the reference keeps it and never uses it", []string{"gemma3"}, []string{"attn_logit_softcapping"}},
	{"the reference limits steps by time_step_min alone", []string{"nemotron_h"},
		[]string{"time_step_limit", "mamba_dt_limit"}},
	{"the reference has no sliding layers", []string{"olmoe"}, []string{"sliding_window"}},
	{"its ropes rotate whole heads", []string{"gemma3", "gemma3n", "olmo3"}, []string{"partial_rotary_factor"}},
	{"no rope of the type has a context before scaling", []string{"gemma3", "gemma3n", "gemma4", "laguna", "lfm3",
		"mimo_v2_flash", "olmo3"}, []string{"original_max_position_embeddings"}},
	{"it needs use_sliding_window", []string{"dots1", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "smollm3"},
		[]string{"max_window_layers", "sliding_window"}},
	{"another key of the type says it", []string{"gemma2"}, []string{"hidden_act", "sliding_window_size"}},
	{"another key of the type says it", []string{"gpt_oss"}, []string{"experts_per_token", "initial_context_length"}},
	{"another key of the type says it", []string{"nemotron_h"},
		[]string{"intermediate_size", "norm_eps", "num_hidden_layers"}},
	{"another key of the type says it", []string{"lfm2"}, []string{"intermediate_size"}},
	{"another key of the type says it", []string{"laguna"}, []string{"mlp_only_layers", "partial_rotary_factor"}},
	{"another key of the type says it", []string{"deepseek_v4"}, []string{"qk_nope_head_dim"}},
	{"another key of the type says it", []string{"starcoder2"}, []string{"activation_function", "layer_norm_epsilon"}},
	{"another key of the type says it", []string{"minimax_m2"}, []string{"rotary_dim"}},
	{"it is the context of training, which another key says", nil,
		[]string{"max_sequence_length", "model_max_length", "seq_length"}},
	{"the context ends where it begins", []string{"qwen"}, []string{"use_logn_attn"}},
	{"the router has no groups", []string{"deepseek_v2"}, []string{"n_group", "topk_group"}},
	{"all layers have experts", []string{"qwen3_5"}, []string{"mlp_only_layers"}},
	{"the type has no rope", []string{"nemotron_h"}, []string{"partial_rotary_factor", "rope_theta"}},
	{"layers have no embeddings of their own", []string{"gemma4"}, []string{"vocab_size_per_layer_input"}},
	{"heads that predict further tokens are listed where they are left out", nil, strings.Fields(`
		mtp_hybrid_override_pattern mtp_layers_block_type num_nextn_predict_layers
		index_share_for_mtp_iteration mtp_transformer_layers num_mtp_modules use_mtp`)},
	{"it belongs to a tower that is not imported", nil, strings.Fields(`
		audio_config audio_soft_tokens_per_image audio_token_id audio_token_index boi_token_id boi_token_index
		downsample_factor gradient_clipping eoi_token_id eoi_token_index
		image_token_id image_token_index mm_tokens_per_image
		multimodal_projector_bias patch_size num_channels projection_hidden_size projection_layer_norm_eps projector_bias
		projector_hidden_act projector_hidden_size projector_use_layernorm spatial_merge_size video_token_id
		vision_config vision_end_token_id vision_feature_layer vision_soft_tokens_per_image vision_start_token_id
		vision_token_id
		do_image_splitting image_end_token_id image_start_token_id media_placeholder_token_id
		use_unified_vision_chunk video_end_token_id video_placeholder video_start_token_id`)},
}

// idleWords are parts of the names of keys that only training uses.
var idleWords = []string{"dropout", "pdrop", "jitter"}

// isIdle reports whether a key has no influence on a forward pass of a model type. A key of the library itself begins
// with an underscore.
func isIdle(key, modelType string) bool {
	return strings.HasPrefix(key, "_") ||
		slices.ContainsFunc(idleWords, func(word string) bool { return strings.Contains(key, word) }) ||
		slices.ContainsFunc(idle, func(i idleKeys) bool {
			return slices.Contains(i.keys, key) && (i.types == nil || slices.Contains(i.types, modelType))
		})
}
