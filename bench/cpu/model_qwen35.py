"""The text model of Qwen 3.5 2B with a quarter of its layers."""

import numpy as np

import gguf
from model import Part, Tensor, matrix, normal, tensor

SIZES = {
    "qwen35": {"hidden": 2048, "intermediate": 6144, "layers": 6, "heads": 8, "kv_heads": 2, "head_dim": 256, "linear_heads": 16, "linear_dim": 128, "vocab": 248320},
    "thin-qwen35": {"hidden": 256, "intermediate": 512, "layers": 6, "heads": 2, "kv_heads": 1, "head_dim": 256, "linear_heads": 4, "linear_dim": 128, "vocab": 2048},
}
ARCHITECTURE = "qwen35"
SMALL = "thin-qwen35"
MLX, SKIPS = False, False
RULES = ["*.embed_tokens.weight=int4"]  # it is the head

EPS = 1e-6
INTERVAL = 4  # the last layer of each is a full one
TAPS = 4
THETA = 10000000.0
ROTATED = 0.25  # of a head
SECTIONS = [11, 11, 10]  # pairs of a head of 256 that turn by time, height and width


def config(s):
    return {
        "architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text", "intermediate_size": s["intermediate"], "full_attention_interval": INTERVAL,
        "linear_conv_kernel_dim": TAPS, "linear_key_head_dim": s["linear_dim"], "linear_value_head_dim": s["linear_dim"],
        "linear_num_key_heads": s["linear_heads"], "linear_num_value_heads": s["linear_heads"], "attn_output_gate": True, "attention_bias": False,
        "rope_parameters": {"rope_type": "default", "rope_theta": THETA, "partial_rotary_factor": ROTATED, "mrope_interleaved": True, "mrope_section": SECTIONS},
        "rms_norm_eps": EPS, "hidden_act": "silu", "tie_word_embeddings": True,
    }


def keys(s):
    u = gguf.UINT32
    return [
        ("feed_forward_length", u, s["intermediate"]), ("full_attention_interval", u, INTERVAL), ("ssm.conv_kernel", u, TAPS),
        ("ssm.state_size", u, s["linear_dim"]), ("ssm.group_count", u, s["linear_heads"]), ("ssm.time_step_rank", u, s["linear_heads"]),
        ("ssm.inner_size", u, s["linear_heads"] * s["linear_dim"]), ("attention.key_length", u, s["head_dim"]), ("attention.value_length", u, s["head_dim"]),
        ("attention.layer_norm_rms_epsilon", gguf.FLOAT32, EPS), ("rope.dimension_count", u, int(s["head_dim"] * ROTATED)),
        ("rope.dimension_sections", gguf.INT32, [*SECTIONS, 0]), ("rope.freq_base", gguf.FLOAT32, THETA),
    ]


def vector(name, to, size, draw, of):
    return Tensor(name, (size,), draw, [Part(to, (size,), of, f32=True)])


def tensors(s):
    hidden, wide, vocab = s["hidden"], s["intermediate"], s["vocab"]
    q, kv, linear = s["heads"] * s["head_dim"], s["kv_heads"] * s["head_dim"], s["linear_heads"] * s["linear_dim"]

    def norm(name, to, size=hidden):
        """Published are these less one."""
        return vector(name, to, size, normal(0.1), lambda w: w + 1)

    every = [tensor("model.embed_tokens.weight", "token_embd.weight", (vocab, hidden), normal(0.02))]
    for i in range(s["layers"]):
        p, b = f"model.layers.{i}.", f"blk.{i}."
        every.append(norm(p + "input_layernorm.weight", b + "attn_norm.weight"))
        if (i + 1) % INTERVAL == 0:
            every += [
                matrix(p + "self_attn.q_proj.weight", b + "attn_q.weight", 2 * q, hidden),
                matrix(p + "self_attn.k_proj.weight", b + "attn_k.weight", kv, hidden),
                matrix(p + "self_attn.v_proj.weight", b + "attn_v.weight", kv, hidden),
                matrix(p + "self_attn.o_proj.weight", b + "attn_output.weight", hidden, q),
                norm(p + "self_attn.q_norm.weight", b + "attn_q_norm.weight", s["head_dim"]),
                norm(p + "self_attn.k_norm.weight", b + "attn_k_norm.weight", s["head_dim"]),
            ]
        else:
            n = p + "linear_attn."
            every += [
                matrix(n + "in_proj_qkv.weight", b + "attn_qkv.weight", 3 * linear, hidden),
                matrix(n + "in_proj_z.weight", b + "attn_gate.weight", linear, hidden),
                matrix(n + "in_proj_a.weight", b + "ssm_alpha.weight", s["linear_heads"], hidden),
                matrix(n + "in_proj_b.weight", b + "ssm_beta.weight", s["linear_heads"], hidden),
                Tensor(n + "conv1d.weight", (3 * linear, 1, TAPS), normal(0.5), [Part(b + "ssm_conv1d.weight", (3 * linear, TAPS), f32=True)]),
                # Memories of some tens of tokens.
                vector(n + "A_log", b + "ssm_a", s["linear_heads"], normal(0.5, -2), lambda w: -np.exp(w)),
                tensor(n + "dt_bias", b + "ssm_dt.bias", (s["linear_heads"],), normal(0.3)),
                tensor(n + "norm.weight", b + "ssm_norm.weight", (s["linear_dim"],), normal(0.1, 1)),
                matrix(n + "out_proj.weight", b + "ssm_out.weight", hidden, linear),
            ]
        every += [
            norm(p + "post_attention_layernorm.weight", b + "post_attention_norm.weight"),
            matrix(p + "mlp.gate_proj.weight", b + "ffn_gate.weight", wide, hidden),
            matrix(p + "mlp.up_proj.weight", b + "ffn_up.weight", wide, hidden),
            matrix(p + "mlp.down_proj.weight", b + "ffn_down.weight", hidden, wide),
        ]
    return [*every, norm("model.norm.weight", "output_norm.weight")]
