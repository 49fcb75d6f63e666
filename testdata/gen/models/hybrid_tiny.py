"""Writes the tiny checkpoints of hybrids with delta nets, linear attention and gated recurrences, with random weights,
and their goldens.

    hybrid_tiny.py [NAME...]
"""

import reference  # first: keeps transformers offline

import torch

import checkpoint
import minimax as publisher
import moe
import tiny
from dense import four, rope, without
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


# Gates of about a half, so that the state lasts for several rows.
RECURRENCE = (
    (r"pre_norm\.weight$", lambda normal: -0.1 + 0.15 * normal),
    (r"final_norm\.weight$", lambda normal: 2.2 + 0.15 * normal),
    (r"embed_tokens\.weight$", lambda normal: 0.03 * normal),
    (r"lm_head\.weight$", lambda normal: 0.06 * normal),
    (r"recurrent_param$", lambda normal: -2 + normal),
    (r"gate_bias$", lambda normal: 0.5 * normal),
    (r"conv_1d\.weight$", lambda normal: 0.5 * normal),
)


def recurrent_gemma():
    published, saved = scans("RecurrentGemma", RECURRENCE)
    return {
        "recurrent_gemma-published": published(
            change("logits_soft_cap", to=2.0), change("attention_window_size", to=4), style=without("tie_word_embeddings"),
            num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=1, intermediate_size=192, lru_width=64,
            attention_window_size=9, tie_word_embeddings=True,
            **rope(1e4, partial_rotary_factor=0.5)),
        "recurrent_gemma-saved": saved(
            change("logits_soft_cap", to=2.0), change("attention_window_size", to=4),
            num_attention_heads=4, num_key_value_heads=2, intermediate_size=128, lru_width=40, conv1d_width=3,
            block_types=["recurrent", "attention"], attention_window_size=9, attention_bias=True, logits_soft_cap=20.0,
            **rope(5e4, partial_rotary_factor=0.5)),
    }


def kimi_linear():
    published, saved = scans("KimiLinear")

    def first(config, tensors):
        config = checkpoint.four(config)
        kinds, mlps = config.pop("layer_types"), config.pop("mlp_layer_types")
        numbers = lambda kind: [i + 1 for i, k in enumerate(kinds) if k == kind]
        config.update(
            first_k_dense_replace=mlps.index("sparse"), moe_layer_freq=1, mla_use_nope=True, moe_router_activation_func="sigmoid",
            use_grouped_topk=True, rope_theta=1e4, rope_scaling=None,
            linear_attn_config={
                "full_attn_layers": numbers("full_attention"), "kda_layers": numbers("linear_attention"),
                "head_dim": config.pop("linear_head_dim"), "num_heads": config.pop("linear_num_heads"),
                "short_conv_kernel_size": config.pop("linear_conv_kernel_dim")})
        return config, checkpoint.rename(tensors, (r"\.block_sparse_moe\.(\w+_proj\.)", r".mlp.\1"))

    sizes = dict(q_lora_rank=None, moe_renormalize=True, num_key_value_heads=4, head_dim=None)
    return {
        "kimi_linear-published": published(
            change("routed_scaling_factor", to=2.5), change("rms_norm_eps", to=0.5), style=first, **{**sizes, **dict(
                layer_types=["linear_attention", "full_attention"], mlp_layer_types=["dense", "sparse"], kv_lora_rank=32,
                qk_nope_head_dim=16, qk_rope_head_dim=16, v_head_dim=32, num_experts=4, num_experts_per_token=2,
                moe_intermediate_size=64, num_shared_experts=1, linear_head_dim=32, linear_num_heads=2,
                routed_scaling_factor=1.3)}),
        "kimi_linear-saved": saved(
            change("moe_renormalize", to=True), change("rms_norm_eps", to=0.5), **{**sizes, **dict(
                layer_types=["full_attention", "linear_attention", "linear_attention"], mlp_layer_types=["sparse", "dense", "sparse"],
                kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=8, num_experts=8, num_experts_per_token=3,
                num_expert_group=4, topk_group=2, moe_renormalize=False, moe_intermediate_size=24, num_shared_experts=2,
                linear_head_dim=12, linear_num_heads=3, linear_conv_kernel_dim=3, q_lora_rank=24, routed_scaling_factor=1.7)}),
    }


# Blocks without residual connections multiply small differences: smaller scores and adapters do less.
CALM = (
    (r"self_attn\.[qk]_proj\.weight$", lambda normal: 0.6 * normal.shape[-1] ** -0.5 * normal),
    (r"adapter_list\.\d+\.1\.weight$", lambda normal: 0.4 * normal.shape[-1] ** -0.5 * normal),
)


def zamba2():
    published, saved = scans("Zamba2", CALM)

    def first(config, tensors):
        config, tensors = four(config, tensors)
        words = {"linear_attention": "mamba", "hybrid": "hybrid"}
        return dict(config, layers_block_type=[words[kind] for kind in config["layers_block_type"]]), tensors

    return {
        "zamba2-published": published(
            change("rms_norm_eps", to=0.5), change("rope_theta", to=1e2), style=first, num_hidden_layers=3,
            layers_block_type=["linear_attention", "hybrid", "hybrid"], num_key_value_heads=4, n_mamba_heads=4, mamba_expand=1,
            mamba_d_state=16, num_mem_blocks=1, use_shared_attention_adapter=True, adapter_rank=32, use_mem_rope=True,
            tie_word_embeddings=True, **rope(1e4)),
        "zamba2-saved": saved(
            change("time_step_min", to=0.3), num_hidden_layers=4,
            layers_block_type=["hybrid", "hybrid", "linear_attention", "hybrid"], n_mamba_heads=8, mamba_ngroups=2,
            mamba_d_state=8, mamba_d_conv=3, num_mem_blocks=2, adapter_rank=4, add_bias_linear=True, time_step_min=0.1,
            tie_word_embeddings=True),
    }


VARIANTS = {**olmo_hybrid(), **minimax(), **recurrent_gemma(), **zamba2(), **kimi_linear()}

if __name__ == "__main__":
    tiny.main(VARIANTS)
