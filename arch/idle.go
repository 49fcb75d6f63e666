package arch

import (
	"slices"
	"strings"
)

// Idle are keys of config.json without influence on a forward pass, for one reason.
type Idle struct {
	Why  string
	Keys []string
}

// idle lists the keys without influence on models of any type. A test requires that every key that the reference reads
// is read here, refused, in this list, or in the type's; all other keys that a type does not read are noted when a
// checkpoint is imported.
var idle = []Idle{
	{"it says what the file is, or where it came from", strings.Fields(`
		architectures auto_map finetuning_task model_type name_or_path task_specific_params text_config tokenizer_class
		transformers_version unsloth_fixed unsloth_version
		for_llm_compressor inference_runner is_llama_config tokenizer_type transformers.js_config
		validate_runner_input`)},
	{"it is the type of the weights, or how they are packed, which the tensors say", strings.Fields(`
		compression_config dtype expert_dtype mamba_ssm_cache_dtype quantization quantization_config torch_dtype
		use_bfloat16
		bf16 fp16 fp32 mamba_ssm_dtype moe_router_dtype params_dtype`)},
	{"only training uses it", strings.Fields(`
		altup_coef_clip embedding_initializer_range init_std initializer_factor initializer_range input_jitter_noise
		layerdrop linear_a_log_max linear_a_log_min linear_dt_init_floor linear_dt_max linear_dt_min mamba_dt_init_floor
		rescale_prenorm_residual router_aux_loss_coef time_step_floor time_step_init_scheme time_step_rank time_step_scale
		w_init_variance_scale final_w_init_variance_scale z_loss_coefficient aux_loss_alpha seq_aux
		output_router_logits gradient_checkpointing
		ignore_index z_loss_weight mup_denominator pruned_heads`)},
	{"it is a token, or decides how text is sampled, which is not part of a forward pass", strings.Fields(`
		bad_words_ids begin_suppress_tokens bos_token bos_token_id decoder_start_token_id diversity_penalty do_sample
		early_stopping encoder_no_repeat_ngram_size eod_token_id eos_token eos_token_id exponential_decay_length_penalty
		forced_bos_token_id forced_eos_token_id length_penalty max_length max_new_tokens min_length no_repeat_ngram_size
		num_beam_groups num_beams num_return_sequences pad_token pad_token_id remove_invalid_values repetition_penalty
		sep_token_id suppress_tokens temperature top_k top_p typical_p unk_token_id
		boa_token_id eoa_token_id eoa_token_index cache_implementation max_tokenizer_truncation`)},
	{"it decides what the library returns", strings.Fields(`
		num_logits_to_keep output_attentions output_hidden_states output_scores return_dict return_dict_in_generate
		torchscript use_cache`)},
	{"it belongs to encoders, or to heads that classify", strings.Fields(`
		chunk_size_feed_forward cross_attention_hidden_size id2label is_decoder is_encoder_decoder label2id num_labels
		prefix problem_type summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj
		n_special predict_special_tokens`)},
	{"it is how a sum is computed, not what the sum is", strings.Fields(`
		attention_softmax_in_fp32 attn_implementation block_size chunk_size mamba_chunk_size moe_shared_expert_overlap
		pretraining_tp reorder_and_upcast_attn residual_in_fp32 scale_attention_softmax_in_fp32 use_associative_scan
		use_mamba_kernels use_mambapy use_mem_eff_path
		apply_query_key_layer_scaling context_window_size ep_size pad_key_length prefill_chunk_size
		tensor_parallel_shards use_flash_attn`)},
	{"the tensors say it by their names and shapes", strings.Fields(`
		expand mamba_expand qk_head_dim
		n_ctx padded_vocab_size use_qk_norm use_routing_bias`)},
	{"it is the context of training, which another key says",
		[]string{"max_sequence_length", "model_max_length", "seq_length"}},
	{"heads that predict further tokens are listed where they are left out", strings.Fields(`
		mtp_hybrid_override_pattern mtp_layers_block_type num_nextn_predict_layers
		index_share_for_mtp_iteration mtp_transformer_layers num_mtp_modules use_mtp`)},
	{"it belongs to a tower that is not imported", strings.Fields(`
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

// isIdle reports whether a key has no influence on a forward pass of models of the type. A key of the library itself
// begins with an underscore.
func (a Arch) isIdle(key string) bool {
	return strings.HasPrefix(key, "_") ||
		slices.ContainsFunc(idleWords, func(word string) bool { return strings.Contains(key, word) }) ||
		slices.ContainsFunc(slices.Concat(idle, a.Idle), func(i Idle) bool { return slices.Contains(i.Keys, key) })
}
