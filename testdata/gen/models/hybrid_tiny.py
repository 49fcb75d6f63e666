"""Writes the tiny checkpoints of hybrids with delta nets and linear attention, with random weights, and their goldens.

    hybrid_tiny.py [NAME...]
"""

import reference  # first: keeps transformers offline

import torch

import checkpoint
import minimax as publisher
import moe
import tiny
from dense import four, rope
from recurrent_tiny import scans
from tiny import change


def split_convolution(tensors, keys):
    """Splits convolutions as publishers do. transformers writes three equal parts, whatever the width of the keys is."""
    out, parts = {}, {}
    for name, tensor in tensors.items():
        if name.endswith("_conv1d.weight"):
            base, _, part = name.rpartition(".weight")[0].rpartition(".")
            parts.setdefault(base, {})[part[0]] = tensor
        else:
            out[name] = tensor
    for base, part in parts.items():
        whole = torch.cat([part[p] for p in "qkv"])
        for p, rows in zip("qkv", (whole[:keys], whole[keys : 2 * keys], whole[2 * keys :])):
            out[f"{base}.{p}_conv1d.weight"] = rows
    return out


def olmo_hybrid():
    published, saved = scans("OlmoHybrid")

    def first(config, tensors):
        config, tensors = four(config, tensors)
        config.pop("rope_theta"), config.pop("rope_scaling")
        config["rope_parameters"] = {"rope_theta": None, "rope_type": "default"}
        # Only the layers with delta nets have these names.
        attention = [i for i, kind in enumerate(config["layer_types"]) if kind == "full_attention"]
        return config, checkpoint.rename(
            split_convolution(tensors, config["linear_num_key_heads"] * config["linear_key_head_dim"]),
            *((rf"layers\.{i}\.feedforward_layer_norm", f"layers.{i}.post_attention_layernorm") for i in attention))

    return {
        "olmo_hybrid-published": published(
            change("linear_allow_neg_eigval", to=False), change("rope_parameters", to={"rope_theta": 1e4, "rope_type": "default"}),
            style=first, layer_types=["linear_attention", "full_attention"], linear_num_key_heads=2, linear_num_value_heads=2,
            linear_key_head_dim=32, linear_value_head_dim=64, rope_parameters={"rope_theta": None, "rope_type": "default"}),
        "olmo_hybrid-saved": saved(
            change("linear_allow_neg_eigval", to=True), change("rms_norm_eps", to=0.5),
            layer_types=["linear_attention", "full_attention", "linear_attention"], linear_num_key_heads=2,
            linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=20, linear_conv_kernel_dim=3,
            linear_allow_neg_eigval=False, attention_bias=True, tie_word_embeddings=True, **rope(5e4)),
    }


def minimax():
    published, saved = scans("MiniMax")

    def first(config, tensors):
        return publisher.to_published(*moe.four(config, tensors))

    factors = dict(
        full_attn_alpha_factor=1.4, full_attn_beta_factor=0.8, linear_attn_alpha_factor=0.7, linear_attn_beta_factor=1.2,
        mlp_alpha_factor=1.3, mlp_beta_factor=0.9)
    made = {
        "minimax-published": published(
            change("layernorm_linear_attention_alpha", to=1.4), change("layernorm_mlp_beta", to=0.5), change("rotary_dim", to=16),
            style=first, layer_types=["linear_attention", "full_attention"], head_dim=16, block_size=16, num_local_experts=4,
            num_experts_per_tok=2, **factors, **rope(1e4)),
        "minimax-saved": saved(
            change("linear_attn_beta_factor", to=0.5), change("full_attn_alpha_factor", to=0.5), change("sliding_window", to=4),
            layer_types=["full_attention", "linear_attention", "linear_attention"], head_dim=8, block_size=8, num_local_experts=6,
            num_experts_per_tok=3, sliding_window=9, **factors, **rope(5e4)),
    }
    for variant in made.values():
        variant.computed = (publisher.DECAYS,)
        variant.exact = (*variant.exact, publisher.DECAYS)
    whole = made["minimax-published"].make
    made["minimax-published"].make = lambda: publisher.partial(whole(), 8)
    return made


VARIANTS = {**olmo_hybrid(), **minimax()}

if __name__ == "__main__":
    tiny.main(VARIANTS)
