package arch

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// ggufGemma3n is the mapping of gemma3n, which is only imported. The converter stacks the projections between residual
// streams, and fills the embeddings by layer up with zeros to the vocabulary. Files of its first version do not say how
// sparse the layers are: all have the numbers of the published models.
var ggufGemma3n = GGUF{
	Architecture: "gemma3n",
	ImportOnly:   true,
	Config:       map[string]any{"model_type": "gemma3n_text", "architectures": []string{"Gemma3nForCausalLM"}},
	Keys: []GGUFKey{
		{Key: "block_count", To: "num_hidden_layers"},
		{Key: "context_length", To: "max_position_embeddings"},
		{Key: "embedding_length", To: "hidden_size"},
		{Key: "feed_forward_length", To: "intermediate_size"},
		{Key: "attention.head_count", To: "num_attention_heads"},
		{Key: "attention.head_count_kv", To: "num_key_value_heads"},
		{Key: "attention.key_length", To: "head_dim"},
		{Key: "attention.layer_norm_rms_epsilon", To: "rms_norm_eps"},
		{Key: "attention.sliding_window", To: "sliding_window"},
		{Key: "attention.shared_kv_layers", To: "num_kv_shared_layers"},
		{Key: "altup.active_idx", To: "altup_active_idx"},
		{Key: "altup.num_inputs", To: "altup_num_inputs"},
		{Key: "embedding_length_per_layer_input", To: "hidden_size_per_layer_input"},
		{Key: "final_logit_softcapping", To: "final_logit_softcapping", Optional: true},
		{Key: "rope.freq_base", To: "rope_theta", Optional: true},
		{Key: "rope.freq_base_swa", To: "rope_local_base_freq", Optional: true},
	},
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufMLP, ggufHeadNorms, ggufNames(GGUFOp{},
		"attn_norm.weight", "input_layernorm.weight", "post_attention_norm.weight", "post_attention_layernorm.weight",
		"ffn_norm.weight", "pre_feedforward_layernorm.weight", "post_ffw_norm.weight", "post_feedforward_layernorm.weight",
		"inp_gate.weight", "per_layer_input_gate.weight", "proj.weight", "per_layer_projection.weight",
		"post_norm.weight", "post_per_layer_input_norm.weight",
		"altup_router.weight", "altup.modality_router.weight", "altup_router_norm.weight", "altup.router_norm.weight",
		"altup_predict_coef.weight", "altup.prediction_coefs.weight",
		"altup_correct_coef.weight", "altup.correction_coefs.weight",
		"altup_correct_scale.weight", "altup.correct_output_scale",
		"laurel_l.weight", "laurel.linear_left.weight", "laurel_r.weight", "laurel.linear_right.weight",
		"laurel_post_norm.weight", "laurel.post_laurel_norm.weight",
	), []GGUFTensor{
		{Name: "altup_proj.weight", To: "model.altup_projections.weight"},
		{Name: "altup_unembd_proj.weight", To: "model.altup_unembed_projections.weight"},
		{Name: "per_layer_token_embd.weight", To: "model.embed_tokens_per_layer.weight"},
		{Name: "per_layer_model_proj.weight", To: "model.per_layer_model_projection.weight"},
		{Name: "per_layer_proj_norm.weight", To: "model.per_layer_projection_norm.weight"},
	}),
	Adjust: adjustGemma3n,
}

func adjustGemma3n(c map[string]any, f GGUFFile) error {
	layers, err := ggufLayers(c)
	if err != nil {
		return err
	}
	for _, t := range []struct{ name, key string }{
		{"blk.0.laurel_l.weight", "laurel_rank"}, {"per_layer_token_embd.weight", "vocab_size_per_layer_input"},
	} {
		shape, ok := f.Shape(t.name)
		if !ok || len(shape) != 2 {
			return fmt.Errorf("%w: there is no tensor %s of two dimensions", ErrGGUF, t.name)
		}
		c[t.key] = shape[0]
	}
	_, c["attention_bias"] = f.Shape("blk.0.attn_q.bias")
	_, c["altup_correct_scale"] = f.Shape("blk.0.altup_correct_scale.weight")
	ggufSliding(c, "gemma3n", f)
	const key = "gemma3n.activation_sparsity_scale"
	v, ok := f.Value(key)
	if !ok {
		return nil
	}
	list, _ := v.([]any)
	shares := make([]float64, layers)
	if len(list) != layers {
		return fmt.Errorf("%w: %s: want %d numbers", ErrGGUF, key, layers)
	}
	for i, v := range list {
		switch n, ok := v.(json.Number); {
		case ok:
			deviations, err := n.Float64()
			if err != nil {
				return fmt.Errorf("%w: %s: %w", ErrGGUF, key, err)
			}
			shares[i] = sparsityOf(deviations)
		case v != "-inf": // all gates are used
			return fmt.Errorf("%w: %s: element %d is %v, want a number or -inf", ErrGGUF, key, i, shown(v))
		}
	}
	c["activation_sparsity_pattern"] = shares
	return nil
}

// sparsityOf returns the share of a normal distribution below so many deviations, which are a float32. Of the shares
// that they are of, it is the one with the fewest digits, as in configurations.
func sparsityOf(deviations float64) float64 {
	share := (1 + math.Erf(deviations/math.Sqrt2)) / 2
	for scale := 10.0; scale < 1e7; scale *= 10 {
		short := math.Round(share*scale) / scale
		if d := math.Sqrt2 * math.Erfinv(2*short-1); math.Abs(d-deviations) < 1e-6*math.Abs(deviations) {
			return short
		}
	}
	return share
}
