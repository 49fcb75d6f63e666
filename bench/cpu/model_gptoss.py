"""gpt-oss-20b with a quarter of its layers and vocabulary. The experts are mxfp4 in every file, as they are published."""

import numpy as np

import gguf
from model import MXFP4, Part, Tensor, matrix, normal, tensor

SIZES = {
    "gptoss": {"hidden": 2880, "experts": 32, "chosen": 4, "width": 2880, "layers": 6, "heads": 64, "kv_heads": 8, "head_dim": 64, "window": 128, "vocab": 50272},
    "thin-gptoss": {"hidden": 256, "experts": 8, "chosen": 4, "width": 128, "layers": 4, "heads": 4, "kv_heads": 2, "head_dim": 64, "window": 8, "vocab": 2048},
}
ARCHITECTURE = "gpt-oss"
SMALL = "thin-gptoss"
MLX, SKIPS = False, False
# Everything but the experts has 8 bits, as in the published GGUF files.
FORMATS = {"llama_mxfp4": "MXFP4"}
TYPE = "int8"
RULES = ["*.experts.*=source", "*.router.*=source"]

EPS = 1e-5
THETA = 150000.0
FACTOR, ORIGINAL = 32.0, 4096


def config(s):
    return {
        "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "intermediate_size": s["width"], "num_local_experts": s["experts"],
        "num_experts_per_tok": s["chosen"], "rms_norm_eps": EPS, "rope_theta": THETA, "hidden_act": "silu", "tie_word_embeddings": False,
        "attention_bias": True, "sliding_window": s["window"], "swiglu_limit": 7.0, "quantization_config": {"quant_method": "mxfp4"},
        "layer_types": [("full" if i % 2 else "sliding") + "_attention" for i in range(s["layers"])],
        "rope_scaling": {"rope_type": "yarn", "factor": FACTOR, "original_max_position_embeddings": ORIGINAL, "beta_fast": 32.0, "beta_slow": 1.0,
                         "truncate": False},
    }


def keys(s):
    u = gguf.UINT32
    return [
        ("feed_forward_length", u, s["width"]), ("expert_count", u, s["experts"]), ("expert_used_count", u, s["chosen"]),
        ("expert_feed_forward_length", u, s["width"]), ("attention.key_length", u, s["head_dim"]), ("attention.value_length", u, s["head_dim"]),
        ("attention.sliding_window", u, s["window"]), ("attention.layer_norm_rms_epsilon", gguf.FLOAT32, EPS), ("rope.freq_base", gguf.FLOAT32, THETA),
        ("rope.scaling.type", gguf.STRING, "yarn"), ("rope.scaling.factor", gguf.FLOAT32, FACTOR),
        ("rope.scaling.original_context_length", u, ORIGINAL),
    ]


def experts(name, dims, parts):
    """Codes of mxfp4 and the exponents of their groups, of weights about as large as those of matrix."""
    exponent = 127 + round(np.log2(dims[-1] ** -0.5 / 2.9))

    def draw(rng, n):
        return rng.integers(0, 256, n // 2, dtype=np.uint8), rng.integers(exponent - 1, exponent + 1, n // 32, dtype=np.uint8)

    return Tensor(name, dims, draw, parts, kind=MXFP4)


def tensors(s):
    hidden, count, width, vocab = s["hidden"], s["experts"], s["width"], s["vocab"]
    q, kv = s["heads"] * s["head_dim"], s["kv_heads"] * s["head_dim"]
    small = normal(0.1)

    def linear(name, to, out, size):
        return [matrix(name + ".weight", to + ".weight", out, size), tensor(name + ".bias", to + ".bias", (out,), small)]

    every = [tensor("model.embed_tokens.weight", "token_embd.weight", (vocab, hidden), normal(0.02))]
    for i in range(s["layers"]):
        p, b = f"model.layers.{i}.", f"blk.{i}."
        e, wide, back = p + "mlp.experts.", (count, width, hidden), (count, hidden, width)
        every += [
            tensor(p + "input_layernorm.weight", b + "attn_norm.weight", (hidden,), normal(0.1, 1)),
            *linear(p + "self_attn.q_proj", b + "attn_q", q, hidden),
            *linear(p + "self_attn.k_proj", b + "attn_k", kv, hidden),
            *linear(p + "self_attn.v_proj", b + "attn_v", kv, hidden),
            *linear(p + "self_attn.o_proj", b + "attn_output", hidden, q),
            tensor(p + "self_attn.sinks", b + "attn_sinks.weight", (s["heads"],), normal(1)),
            tensor(p + "post_attention_layernorm.weight", b + "post_attention_norm.weight", (hidden,), normal(0.1, 1)),
            matrix(p + "mlp.router.weight", b + "ffn_gate_inp.weight", count, hidden, f32=True),
            tensor(p + "mlp.router.bias", b + "ffn_gate_inp.bias", (count,), small),
            experts(e + "gate_up_proj", (count, 2 * width, hidden), [
                Part(b + "ffn_gate_exps.weight", wide, lambda codes: codes[:, ::2]), Part(b + "ffn_up_exps.weight", wide, lambda codes: codes[:, 1::2])]),
            Tensor(e + "gate_up_proj_bias", (count, 2 * width), small, [
                Part(b + "ffn_gate_exps.bias", (count, width), lambda values: values[:, ::2], f32=True),
                Part(b + "ffn_up_exps.bias", (count, width), lambda values: values[:, 1::2], f32=True)]),
            experts(e + "down_proj", back, [Part(b + "ffn_down_exps.weight", back)]),
            tensor(e + "down_proj_bias", b + "ffn_down_exps.bias", (count, hidden), small, f32=True),
        ]
    return [*every, tensor("model.norm.weight", "output_norm.weight", (hidden,), normal(0.1, 1)), matrix("lm_head.weight", "output.weight", vocab, hidden)]
