"""Nemotron 3 Nano with a quarter of its layers, experts and vocabulary: Mamba 2, experts of a sigmoid router with a shared one, and
attention without positions, in the published order. 2.2 billion parameters, of which a token reads 0.8.

The width, 2688, is not a multiple of the 256 elements of a block of Q4_K, so llama.cpp is measured with Q4_0 only."""

import numpy as np

import gguf
from model import Part, Tensor, matrix, normal, tensor

SIZES = {
    "nemotron": {"hidden": 2688, "experts": 32, "chosen": 6, "width": 1856, "shared": 3712, "pattern": "MEMEM*EMEMEM*", "layers": 13, "heads": 32,
                 "kv_heads": 2, "head_dim": 128, "scan_heads": 64, "scan_dim": 64, "groups": 8, "state": 128, "vocab": 32768},
    "thin-nemotron": {"hidden": 256, "experts": 8, "chosen": 3, "width": 128, "shared": 192, "pattern": "MEM*E", "layers": 5, "heads": 4,
                      "kv_heads": 2, "head_dim": 64, "scan_heads": 8, "scan_dim": 32, "groups": 2, "state": 64, "vocab": 2048},
}
ARCHITECTURE = "nemotron_h_moe"
SMALL = "thin-nemotron"
MLX, SKIPS = False, False
FORMATS = {"llama_q4_0": "Q4_0"}
DEPTH = 8192

EPS = 1e-5
TAPS = 4
SCALING = 2.5


def config(s):
    return {
        "architectures": ["NemotronHForCausalLM"], "model_type": "nemotron_h", "hybrid_override_pattern": s["pattern"], "layer_norm_epsilon": EPS,
        "max_position_embeddings": 2 * DEPTH, "mamba_num_heads": s["scan_heads"], "mamba_head_dim": s["scan_dim"], "n_groups": s["groups"],
        "ssm_state_size": s["state"], "conv_kernel": TAPS, "use_conv_bias": True, "use_bias": False, "mamba_hidden_act": "silu", "time_step_min": 0.001,
        "n_routed_experts": s["experts"], "num_experts_per_tok": s["chosen"], "moe_intermediate_size": s["width"], "n_shared_experts": 1,
        "moe_shared_expert_intermediate_size": s["shared"], "n_group": 1, "topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": SCALING,
        "mlp_hidden_act": "relu2", "mlp_bias": False, "attention_bias": False, "tie_word_embeddings": False,
    }


def by_layer(s, **values):
    """A value for each layer, by the letter of its kind; 0 for other kinds."""
    kinds = {"M": "scan", "E": "experts", "*": "attention"}
    return [values.get(kinds[letter], 0) for letter in s["pattern"]]


def keys(s):
    u, f = gguf.UINT32, gguf.FLOAT32
    return [
        ("attention.head_count_kv", u, by_layer(s, attention=s["kv_heads"])), ("feed_forward_length", u, by_layer(s, experts=s["width"])),
        ("attention.key_length", u, s["head_dim"]), ("attention.value_length", u, s["head_dim"]), ("attention.layer_norm_rms_epsilon", f, EPS),
        ("attention.layer_norm_epsilon", f, EPS), ("rope.dimension_count", u, s["head_dim"]), ("rope.scaling.finetuned", gguf.BOOL, False),
        ("ssm.conv_kernel", u, TAPS), ("ssm.state_size", u, s["state"]), ("ssm.group_count", u, s["groups"]), ("ssm.time_step_rank", u, s["scan_heads"]),
        ("ssm.inner_size", u, s["scan_heads"] * s["scan_dim"]), ("expert_count", u, s["experts"]), ("expert_used_count", u, s["chosen"]),
        ("expert_feed_forward_length", u, s["width"]), ("expert_shared_feed_forward_length", u, s["shared"]), ("expert_shared_count", u, 1),
        ("expert_group_count", u, 1), ("expert_group_used_count", u, 1), ("expert_weights_norm", gguf.BOOL, True), ("expert_weights_scale", f, SCALING),
    ]


def scan(p, b, s):
    hidden, heads, wide = s["hidden"], s["scan_heads"], s["scan_heads"] * s["scan_dim"]
    channels = wide + 2 * s["groups"] * s["state"]

    def head(name, to, draw, of=lambda values: values):
        return Tensor(p + name, (heads,), draw, [Part(b + to, (heads, 1), of, f32=True)])

    return [
        matrix(p + "in_proj.weight", b + "ssm_in.weight", wide + channels + heads, hidden),
        Tensor(p + "conv1d.weight", (channels, 1, TAPS), normal(0.5), [Part(b + "ssm_conv1d.weight", (channels, TAPS), f32=True)]),
        tensor(p + "conv1d.bias", b + "ssm_conv1d.bias", (channels,), normal(0.1)),
        # Memories of some tens of tokens.
        head("A_log", "ssm_a", normal(0.5, -2), lambda values: -np.exp(values)),
        head("D", "ssm_d", normal(0.3, 1)),
        tensor(p + "dt_bias", b + "ssm_dt.bias", (heads,), normal(0.3)),
        Tensor(p + "norm.weight", (wide,), normal(0.1, 1), [Part(b + "ssm_norm.weight", (s["groups"], wide // s["groups"]), f32=True)]),
        matrix(p + "out_proj.weight", b + "ssm_out.weight", hidden, wide),
    ]


def experts(p, b, s):
    hidden, count, width, shared = s["hidden"], s["experts"], s["width"], s["shared"]
    return [
        matrix(p + "gate.weight", b + "ffn_gate_inp.weight", count, hidden, f32=True),
        tensor(p + "gate.e_score_correction_bias", b + "exp_probs_b.bias", (count,), normal(0.02)),
        matrix(p + "experts.up_proj", b + "ffn_up_exps.weight", count, width, hidden),
        matrix(p + "experts.down_proj", b + "ffn_down_exps.weight", count, hidden, width),
        matrix(p + "shared_experts.up_proj.weight", b + "ffn_up_shexp.weight", shared, hidden),
        matrix(p + "shared_experts.down_proj.weight", b + "ffn_down_shexp.weight", hidden, shared),
    ]


def attention(p, b, s):
    q, kv = s["heads"] * s["head_dim"], s["kv_heads"] * s["head_dim"]
    return [
        matrix(p + "q_proj.weight", b + "attn_q.weight", q, s["hidden"]),
        matrix(p + "k_proj.weight", b + "attn_k.weight", kv, s["hidden"]),
        matrix(p + "v_proj.weight", b + "attn_v.weight", kv, s["hidden"]),
        matrix(p + "o_proj.weight", b + "attn_output.weight", s["hidden"], q),
    ]


def tensors(s):
    hidden, vocab = s["hidden"], s["vocab"]
    every = [tensor("backbone.embeddings.weight", "token_embd.weight", (vocab, hidden), normal(0.02))]
    for i, letter in enumerate(s["pattern"]):
        p, b = f"backbone.layers.{i}.", f"blk.{i}."
        mixer = {"M": scan, "E": experts, "*": attention}[letter]
        every += [tensor(p + "norm.weight", b + "attn_norm.weight", (hidden,), normal(0.1, 1)), *mixer(p + "mixer.", b, s)]
    return [
        *every, tensor("backbone.norm_f.weight", "output_norm.weight", (hidden,), normal(0.1, 1)),
        matrix("lm_head.weight", "output.weight", vocab, hidden),
    ]
