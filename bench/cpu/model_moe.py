"""A Qwen3 MoE of 1.3 billion parameters: Qwen3-30B-A3B with a quarter of its layers, half its width, experts and vocabulary
to match."""

import gguf
from model import Part, Tensor, matrix, normal, tensor

SIZES = {
    "moe": {"hidden": 1024, "experts": 128, "chosen": 8, "width": 256, "layers": 12, "heads": 16, "kv_heads": 2, "head_dim": 128, "vocab": 32000},
    "thin-moe": {"hidden": 256, "experts": 16, "chosen": 4, "width": 64, "layers": 3, "heads": 4, "kv_heads": 2, "head_dim": 64, "vocab": 2048},
}
ARCHITECTURE = "qwen3moe"
SMALL = "thin-moe"
MLX, SKIPS = False, False

EPS = 1e-6
THETA = 1000000.0


def config(s):
    return {
        "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "intermediate_size": 3 * s["hidden"], "moe_intermediate_size": s["width"],
        "num_experts": s["experts"], "num_experts_per_tok": s["chosen"], "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [],
        "rms_norm_eps": EPS, "rope_theta": THETA, "hidden_act": "silu", "tie_word_embeddings": False,
    }


def keys(s):
    return [
        ("feed_forward_length", gguf.UINT32, 3 * s["hidden"]), ("expert_count", gguf.UINT32, s["experts"]), ("expert_used_count", gguf.UINT32, s["chosen"]),
        ("expert_feed_forward_length", gguf.UINT32, s["width"]), ("attention.key_length", gguf.UINT32, s["head_dim"]),
        ("attention.value_length", gguf.UINT32, s["head_dim"]), ("attention.layer_norm_rms_epsilon", gguf.FLOAT32, EPS),
        ("rope.dimension_count", gguf.UINT32, s["head_dim"]), ("rope.freq_base", gguf.FLOAT32, THETA),
    ]


def tensors(s):
    hidden, experts, width, head, vocab = s["hidden"], s["experts"], s["width"], s["head_dim"], s["vocab"]
    q, kv = s["heads"] * head, s["kv_heads"] * head

    def norm(name, to, size=hidden):
        return tensor(name, to, (size,), normal(0.1, 1))

    every = [tensor("model.embed_tokens.weight", "token_embd.weight", (vocab, hidden), normal(0.02))]
    for i in range(s["layers"]):
        p, b = f"model.layers.{i}.", f"blk.{i}."
        one = (experts, width, hidden)
        every += [
            norm(p + "input_layernorm.weight", b + "attn_norm.weight"),
            matrix(p + "self_attn.q_proj.weight", b + "attn_q.weight", q, hidden),
            matrix(p + "self_attn.k_proj.weight", b + "attn_k.weight", kv, hidden),
            matrix(p + "self_attn.v_proj.weight", b + "attn_v.weight", kv, hidden),
            matrix(p + "self_attn.o_proj.weight", b + "attn_output.weight", hidden, q),
            norm(p + "self_attn.q_norm.weight", b + "attn_q_norm.weight", head),
            norm(p + "self_attn.k_norm.weight", b + "attn_k_norm.weight", head),
            norm(p + "post_attention_layernorm.weight", b + "ffn_norm.weight"),
            matrix(p + "mlp.gate.weight", b + "ffn_gate_inp.weight", experts, hidden, f32=True),
            Tensor(p + "mlp.experts.gate_up_proj", (experts, 2 * width, hidden), normal(hidden**-0.5), [
                Part(b + "ffn_gate_exps.weight", one, lambda bits: bits[:, :width]), Part(b + "ffn_up_exps.weight", one, lambda bits: bits[:, width:]),
            ]),
            matrix(p + "mlp.experts.down_proj", b + "ffn_down_exps.weight", experts, hidden, width),
        ]
    return [*every, norm("model.norm.weight", "output_norm.weight"), matrix("lm_head.weight", "output.weight", vocab, hidden)]
