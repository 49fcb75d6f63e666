"""The text model of Gemma 4 E2B with two of its seven groups of five layers, one of which shares the other's keys and values."""

import numpy as np

import gguf
from model import matrix, normal, tensor

SIZES = {
    "gemma4": {"hidden": 1536, "intermediate": 6144, "layers": 10, "shared": 5, "heads": 8, "kv_heads": 1, "head_dim": 256, "global_dim": 512, "window": 512, "per_layer": 256, "vocab": 262144},
    "thin-gemma4": {"hidden": 256, "intermediate": 512, "layers": 10, "shared": 5, "heads": 4, "kv_heads": 1, "head_dim": 64, "global_dim": 128, "window": 8, "per_layer": 64, "vocab": 2048},
}
ARCHITECTURE = "gemma4"
SMALL = "thin-gemma4"
MLX, SKIPS = False, True

EPS = 1e-6
CAP = 30.0
PERIOD = 5  # the last layer of each is a full one
THETA, SLIDING_THETA = 1000000.0, 10000.0
ROTATED = 0.25  # of a head of a full layer


def full(i):
    return (i + 1) % PERIOD == 0


def width(s, i):
    return s["intermediate"] * (1 if i < s["layers"] - s["shared"] else 2)


def config(s):
    return {
        "architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text", "intermediate_size": s["intermediate"], "global_head_dim": s["global_dim"],
        "num_global_key_value_heads": None, "num_kv_shared_layers": s["shared"], "use_double_wide_mlp": True, "attention_k_eq_v": False,
        "hidden_size_per_layer_input": s["per_layer"], "vocab_size_per_layer_input": s["vocab"], "sliding_window": s["window"], "attention_bias": False,
        "layer_types": ["full_attention" if full(i) else "sliding_attention" for i in range(s["layers"])], "hidden_activation": "gelu_pytorch_tanh",
        "rope_parameters": {
            "full_attention": {"rope_type": "proportional", "rope_theta": THETA, "partial_rotary_factor": ROTATED},
            "sliding_attention": {"rope_type": "default", "rope_theta": SLIDING_THETA},
        },
        "final_logit_softcapping": CAP, "rms_norm_eps": EPS, "enable_moe_block": False, "tie_word_embeddings": True,
    }


def keys(s):
    u = gguf.UINT32
    return [
        ("feed_forward_length", u, [width(s, i) for i in range(s["layers"])]), ("embedding_length_per_layer_input", u, s["per_layer"]),
        ("attention.shared_kv_layers", u, s["shared"]), ("attention.sliding_window", u, s["window"]),
        ("attention.sliding_window_pattern", gguf.BOOL, [not full(i) for i in range(s["layers"])]),
        ("attention.key_length", u, s["global_dim"]), ("attention.value_length", u, s["global_dim"]), ("rope.dimension_count", u, s["global_dim"]),
        ("attention.key_length_swa", u, s["head_dim"]), ("attention.value_length_swa", u, s["head_dim"]), ("rope.dimension_count_swa", u, s["head_dim"]),
        ("rope.freq_base", gguf.FLOAT32, THETA), ("rope.freq_base_swa", gguf.FLOAT32, SLIDING_THETA),
        ("attention.layer_norm_rms_epsilon", gguf.FLOAT32, EPS), ("final_logit_softcapping", gguf.FLOAT32, CAP),
    ]


def extra(s):
    """llama.cpp divides the angles of full layers: those that are not rotated by a lot."""
    half = s["global_dim"] // 2
    return [("rope_freqs.weight", np.where(np.arange(half) < half * ROTATED, 1.0, 1e30).astype("<f4"))]


def tensors(s):
    hidden, layers, vectors = s["hidden"], s["layers"], s["per_layer"]

    def norm(name, to, size=hidden):
        return tensor(name, to, (size,), normal(0.1, 1))

    every = [
        tensor("model.embed_tokens.weight", "token_embd.weight", (s["vocab"], hidden), normal(0.02)),
        tensor("model.embed_tokens_per_layer.weight", "per_layer_token_embd.weight", (s["vocab"], layers * vectors), normal(0.02)),
        matrix("model.per_layer_model_projection.weight", "per_layer_model_proj.weight", layers * vectors, hidden),
        norm("model.per_layer_projection_norm.weight", "per_layer_proj_norm.weight", vectors),
    ]
    for i in range(layers):
        p, b = f"model.layers.{i}.", f"blk.{i}."
        head = s["global_dim"] if full(i) else s["head_dim"]
        q, kv, wide = s["heads"] * head, s["kv_heads"] * head, width(s, i)
        every += [
            norm(p + "input_layernorm.weight", b + "attn_norm.weight"),
            matrix(p + "self_attn.q_proj.weight", b + "attn_q.weight", q, hidden),
            norm(p + "self_attn.q_norm.weight", b + "attn_q_norm.weight", head),
        ]
        if i < layers - s["shared"]:
            every += [
                matrix(p + "self_attn.k_proj.weight", b + "attn_k.weight", kv, hidden),
                matrix(p + "self_attn.v_proj.weight", b + "attn_v.weight", kv, hidden),
                norm(p + "self_attn.k_norm.weight", b + "attn_k_norm.weight", head),
            ]
        every += [
            matrix(p + "self_attn.o_proj.weight", b + "attn_output.weight", hidden, q),
            norm(p + "post_attention_layernorm.weight", b + "post_attention_norm.weight"),
            norm(p + "pre_feedforward_layernorm.weight", b + "ffn_norm.weight"),
            matrix(p + "mlp.gate_proj.weight", b + "ffn_gate.weight", wide, hidden),
            matrix(p + "mlp.up_proj.weight", b + "ffn_up.weight", wide, hidden),
            matrix(p + "mlp.down_proj.weight", b + "ffn_down.weight", hidden, wide),
            norm(p + "post_feedforward_layernorm.weight", b + "post_ffw_norm.weight"),
            matrix(p + "per_layer_input_gate.weight", b + "inp_gate.weight", vectors, hidden),
            matrix(p + "per_layer_projection.weight", b + "proj.weight", hidden, vectors),
            norm(p + "post_per_layer_input_norm.weight", b + "post_norm.weight"),
            norm(p + "layer_scalar", b + "layer_output_scale.weight", 1),
        ]
    return [*every, norm("model.norm.weight", "output_norm.weight")]
