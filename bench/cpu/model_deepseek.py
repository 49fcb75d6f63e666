"""DeepSeek V3 with a quarter of its width, heads, experts and vocabulary, and 8 of its layers: latent attention with the published
sizes of latents and heads, one dense layer, and experts of a sigmoid router with a shared one. 1.5 billion parameters.

In GGUF the matrix of the latent counts as absorbed: the latents are the keys and values of a single head."""

import gguf
from model import Part, Tensor, matrix, normal, tensor

SIZES = {
    "deepseek": {"hidden": 1792, "dense": 4608, "experts": 64, "chosen": 8, "width": 512, "layers": 8, "heads": 32, "kv_heads": 1, "head_dim": 64,
                 "query_rank": 384, "rank": 512, "nope": 128, "rope": 64, "value": 128, "vocab": 32320},
    "thin-deepseek": {"hidden": 256, "dense": 512, "experts": 16, "chosen": 4, "width": 64, "layers": 3, "heads": 4, "kv_heads": 1, "head_dim": 32,
                      "query_rank": 128, "rank": 256, "nope": 64, "rope": 32, "value": 64, "vocab": 2048},
}
ARCHITECTURE = "deepseek2"
SMALL = "thin-deepseek"
MLX, SKIPS = False, False

EPS = 1e-6
THETA = 10000.0
SCALING = 2.5


def config(s):
    return {
        "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3",
        "num_key_value_heads": s["heads"], "intermediate_size": s["dense"], "moe_intermediate_size": s["width"],
        "n_routed_experts": s["experts"], "num_experts_per_tok": s["chosen"], "n_shared_experts": 1, "first_k_dense_replace": 1, "moe_layer_freq": 1,
        "n_group": 1, "topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": SCALING, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
        "q_lora_rank": s["query_rank"], "kv_lora_rank": s["rank"], "qk_nope_head_dim": s["nope"], "qk_rope_head_dim": s["rope"], "v_head_dim": s["value"],
        "num_nextn_predict_layers": 0, "rms_norm_eps": EPS, "rope_theta": THETA, "hidden_act": "silu", "tie_word_embeddings": False,
    }


def keys(s):
    u, f = gguf.UINT32, gguf.FLOAT32
    return [
        ("feed_forward_length", u, s["dense"]), ("leading_dense_block_count", u, 1),
        ("expert_count", u, s["experts"]), ("expert_used_count", u, s["chosen"]), ("expert_feed_forward_length", u, s["width"]),
        ("expert_shared_count", u, 1), ("expert_gating_func", u, 2), ("expert_weights_scale", f, SCALING), ("expert_weights_norm", gguf.BOOL, True),
        ("attention.q_lora_rank", u, s["query_rank"]), ("attention.kv_lora_rank", u, s["rank"]), ("attention.key_length", u, s["rank"] + s["rope"]),
        ("attention.value_length", u, s["rank"]), ("attention.key_length_mla", u, s["nope"] + s["rope"]), ("attention.value_length_mla", u, s["value"]),
        ("attention.layer_norm_rms_epsilon", f, EPS), ("rope.dimension_count", u, s["rope"]), ("rope.freq_base", f, THETA),
    ]


def latent(name, to, s):
    """The matrix that expands latents to keys and values. GGUF has it as two, and each head of the keys' one transposed."""
    heads, nope, value, rank = s["heads"], s["nope"], s["value"], s["rank"]
    by_head = lambda bits: bits.reshape(heads, nope + value, rank)  # noqa: E731
    return Tensor(name, (heads * (nope + value), rank), normal(rank**-0.5), [
        Part(to + "attn_k_b.weight", (heads, rank, nope), lambda bits: by_head(bits)[:, :nope].swapaxes(1, 2)),
        Part(to + "attn_v_b.weight", (heads, value, rank), lambda bits: by_head(bits)[:, nope:])])


def network(p, b, sparse, s):
    hidden = s["hidden"]

    def gated(name, to, end, width):
        return [matrix(f"{p}{name}gate_proj.weight", f"{b}{to}gate{end}.weight", width, hidden),
                matrix(f"{p}{name}up_proj.weight", f"{b}{to}up{end}.weight", width, hidden),
                matrix(f"{p}{name}down_proj.weight", f"{b}{to}down{end}.weight", hidden, width)]

    if not sparse:
        return gated("mlp.", "ffn_", "", s["dense"])
    experts, width = s["experts"], s["width"]
    one = (experts, width, hidden)
    return [
        matrix(p + "mlp.gate.weight", b + "ffn_gate_inp.weight", experts, hidden, f32=True),
        tensor(p + "mlp.gate.e_score_correction_bias", b + "exp_probs_b.bias", (experts,), normal(0.02)),
        Tensor(p + "mlp.experts.gate_up_proj", (experts, 2 * width, hidden), normal(hidden**-0.5), [
            Part(b + "ffn_gate_exps.weight", one, lambda bits: bits[:, :width]), Part(b + "ffn_up_exps.weight", one, lambda bits: bits[:, width:])]),
        matrix(p + "mlp.experts.down_proj", b + "ffn_down_exps.weight", experts, hidden, width),
        *gated("mlp.shared_experts.", "ffn_", "_shexp", width),
    ]


def tensors(s):
    hidden, vocab = s["hidden"], s["vocab"]

    def norm(name, to, size=hidden):
        return tensor(name, to, (size,), normal(0.1, 1))

    every = [tensor("model.embed_tokens.weight", "token_embd.weight", (vocab, hidden), normal(0.02))]
    for i in range(s["layers"]):
        p, b = f"model.layers.{i}.", f"blk.{i}."
        every += [
            norm(p + "input_layernorm.weight", b + "attn_norm.weight"),
            matrix(p + "self_attn.q_a_proj.weight", b + "attn_q_a.weight", s["query_rank"], hidden),
            norm(p + "self_attn.q_a_layernorm.weight", b + "attn_q_a_norm.weight", s["query_rank"]),
            matrix(p + "self_attn.q_b_proj.weight", b + "attn_q_b.weight", s["heads"] * (s["nope"] + s["rope"]), s["query_rank"]),
            matrix(p + "self_attn.kv_a_proj_with_mqa.weight", b + "attn_kv_a_mqa.weight", s["rank"] + s["rope"], hidden),
            norm(p + "self_attn.kv_a_layernorm.weight", b + "attn_kv_a_norm.weight", s["rank"]),
            latent(p + "self_attn.kv_b_proj.weight", b, s),
            matrix(p + "self_attn.o_proj.weight", b + "attn_output.weight", hidden, s["heads"] * s["value"]),
            norm(p + "post_attention_layernorm.weight", b + "ffn_norm.weight"),
            *network(p, b, i > 0, s),
        ]
    return [*every, norm("model.norm.weight", "output_norm.weight"), matrix("lm_head.weight", "output.weight", vocab, hidden)]
