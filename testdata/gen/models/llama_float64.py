"""Llama in float64 and numpy, written from the definitions and without transformers: a second opinion on goldens.

RMSNorm is x / sqrt(mean(x^2) + eps) * w. The rotation turns pairs (i, i + d/2) of each head. YaRN is arXiv 2309.00071,
section 3; its attention factor multiplies cos and sin. Llama 3's frequencies have three bands by wavelength.
"""

import json
import math

import numpy as np
import torch
from safetensors import safe_open


def load(folder):
    """Returns config.json, and every tensor in float64."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    weights = {}
    for path in sorted(folder.glob("model*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():
                weights[name] = file.get_tensor(name).to(torch.float64).numpy()
    return config, weights


def rope(config, dim):
    """Returns the inverse frequencies [dim/2] and the factor on cos and sin."""
    params = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    theta = params.get("rope_theta") or config.get("rope_theta") or 10000.0
    kind = params.get("rope_type") or params.get("type") or "default"
    freq = theta ** (-np.arange(0, dim, 2) / dim)
    if kind == "default":
        return freq, 1.0
    factor = params["factor"]
    if kind == "linear":
        return freq / factor, 1.0
    trained = params["original_max_position_embeddings"]
    if kind == "llama3":
        low, high = params["low_freq_factor"], params["high_freq_factor"]
        # By turns within the trained length: above high unchanged, below low divided by the factor, else a blend.
        keep = np.clip((trained * freq / (2 * math.pi) - low) / (high - low), 0, 1)
        return keep * freq + (1 - keep) * freq / factor, 1.0
    if kind == "yarn":
        def boundary(turns):
            return dim * math.log(trained / (turns * 2 * math.pi)) / (2 * math.log(theta))

        def scale(m):
            return 0.1 * m * math.log(factor) + 1 if factor > 1 else 1.0

        low, high = boundary(params.get("beta_fast") or 32), boundary(params.get("beta_slow") or 1)
        if params.get("truncate", True):
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, dim - 1)
        slow = np.clip((np.arange(dim // 2) - low) / ((high - low) or 0.001), 0, 1)
        attention = params.get("attention_factor")
        if attention is None:
            one, all_dims = params.get("mscale"), params.get("mscale_all_dim")
            attention = scale(one) / scale(all_dims) if one and all_dims else scale(1)
        return (1 - slow) * freq + slow * freq / factor, attention
    raise ValueError(f"rope type {kind}")


def forward(config, weights, tokens):
    """Returns the logits [T, V] of tokens [T]."""
    heads = config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads") or heads
    dim = config.get("head_dim") or config["hidden_size"] // heads
    count = len(tokens)

    freq, factor = rope(config, dim)
    angle = np.arange(count)[:, None] * freq
    cos, sin = np.cos(angle)[:, None] * factor, np.sin(angle)[:, None] * factor

    def linear(x, name):
        y = x @ weights[name + ".weight"].T
        return y + weights[name + ".bias"] if name + ".bias" in weights else y

    def norm(x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + config["rms_norm_eps"]) * weights[name + ".weight"]

    def rotate(x):
        a, b = x[..., : dim // 2], x[..., dim // 2 :]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    x = weights["model.embed_tokens.weight"][np.asarray(tokens)]
    future = np.triu(np.full((count, count), -np.inf), 1)
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}."
        h = norm(x, at + "input_layernorm")
        q = rotate(linear(h, at + "self_attn.q_proj").reshape(count, heads, dim))
        k = rotate(linear(h, at + "self_attn.k_proj").reshape(count, kv_heads, dim))
        v = linear(h, at + "self_attn.v_proj").reshape(count, kv_heads, dim)
        k, v = np.repeat(k, heads // kv_heads, 1), np.repeat(v, heads // kv_heads, 1)
        scores = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(dim) + future
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        x = x + linear(np.einsum("hqk,khd->qhd", p, v).reshape(count, heads * dim), at + "self_attn.o_proj")
        h = norm(x, at + "post_attention_layernorm")
        gate = linear(h, at + "mlp.gate_proj")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(h, at + "mlp.up_proj"), at + "mlp.down_proj")
    head = "model.embed_tokens.weight" if config.get("tie_word_embeddings") else "lm_head.weight"
    return norm(x, "model.norm") @ weights[head].T
