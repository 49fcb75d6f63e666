"""A Llama of 0.85 billion parameters."""

import gguf
from model import Part, Tensor, normal, ones

# "thin" is dense with its layers, operations and vocabulary and next to no arithmetic: for trying the benchmark out.
SIZES = {
    "dense": {"hidden": 2048, "intermediate": 5632, "layers": 16, "heads": 16, "kv_heads": 4, "head_dim": 128, "vocab": 32000},
    "thin": {"hidden": 256, "intermediate": 256, "layers": 16, "heads": 4, "kv_heads": 1, "head_dim": 64, "vocab": 32000},
    "thin-dense": {"hidden": 256, "intermediate": 512, "layers": 3, "heads": 4, "kv_heads": 2, "head_dim": 64, "vocab": 2048},
}
ARCHITECTURE = "llama"
SMALL = "thin-dense"
MLX, SKIPS = True, False

EPS = 1e-5
THETA = 10000.0


def config(s):
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "intermediate_size": s["intermediate"], "rms_norm_eps": EPS, "rope_theta": THETA,
        "hidden_act": "silu", "tie_word_embeddings": False,
    }


def keys(s):
    return [
        ("feed_forward_length", gguf.UINT32, s["intermediate"]), ("attention.key_length", gguf.UINT32, s["head_dim"]),
        ("attention.value_length", gguf.UINT32, s["head_dim"]), ("attention.layer_norm_rms_epsilon", gguf.FLOAT32, EPS),
        ("rope.dimension_count", gguf.UINT32, s["head_dim"]), ("rope.freq_base", gguf.FLOAT32, THETA),
    ]


def tensors(s):
    hidden, width, q, kv = s["hidden"], s["intermediate"], s["heads"] * s["head_dim"], s["kv_heads"] * s["head_dim"]

    def norm(name, to):
        return Tensor(name, (hidden,), ones, [Part(to, (hidden,), f32=True)])

    def matrix(name, to, *dims, of=lambda bits: bits):
        return Tensor(name, dims, normal(0.02), [Part(to, dims, of)])

    def rotated(rows):
        return interleaved(rows, s["head_dim"])

    every = [matrix("model.embed_tokens.weight", "token_embd.weight", s["vocab"], hidden)]
    for i in range(s["layers"]):
        p, b = f"model.layers.{i}.", f"blk.{i}."
        every += [
            norm(p + "input_layernorm.weight", b + "attn_norm.weight"),
            matrix(p + "self_attn.q_proj.weight", b + "attn_q.weight", q, hidden, of=rotated),
            matrix(p + "self_attn.k_proj.weight", b + "attn_k.weight", kv, hidden, of=rotated),
            matrix(p + "self_attn.v_proj.weight", b + "attn_v.weight", kv, hidden),
            matrix(p + "self_attn.o_proj.weight", b + "attn_output.weight", hidden, q),
            norm(p + "post_attention_layernorm.weight", b + "ffn_norm.weight"),
            matrix(p + "mlp.gate_proj.weight", b + "ffn_gate.weight", width, hidden),
            matrix(p + "mlp.up_proj.weight", b + "ffn_up.weight", width, hidden),
            matrix(p + "mlp.down_proj.weight", b + "ffn_down.weight", hidden, width),
        ]
    return [*every, norm("model.norm.weight", "output_norm.weight"), matrix("lm_head.weight", "output.weight", s["vocab"], hidden)]


def interleaved(rows, head_dim):
    """Rows of a head in the order that llama.cpp rotates: each pair side by side, not half a head apart."""
    return rows.reshape(-1, 2, head_dim // 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)
