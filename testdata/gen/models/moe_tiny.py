"""Writes the tiny checkpoints of mixtures of experts, with random weights, and their goldens.

    moe_tiny.py [NAME...]
"""

import reference  # first: keeps transformers offline

import tiny
from dense import layers, rope
from dense_tiny import LLAMA3
from moe import RULES, WITH_HEAD, family, flipped, four, grouped, head, next_layer
from tiny import change


def mixtral():
    published, saved = family("Mixtral")
    return {
        "mixtral-published": published(change("num_experts_per_tok", to=1), num_local_experts=4, **rope(1e6)),
        "mixtral-saved": saved(
            change("sliding_window", to=12), change("num_experts_per_tok", to=2), num_local_experts=6, num_experts_per_tok=3,
            head_dim=16, sliding_window=9, tie_word_embeddings=True, **rope(**LLAMA3)),
    }


def qwen2_moe():
    published, saved = family("Qwen2Moe", num_experts_per_tok=2)
    return {
        "qwen2_moe-published": published(
            change("norm_topk_prob", to=True), num_experts=4, moe_intermediate_size=64, shared_expert_intermediate_size=64),
        "qwen2_moe-saved": saved(
            change("norm_topk_prob", to=False), change("sliding_window", to=12),
            num_experts=6, moe_intermediate_size=16, shared_expert_intermediate_size=48, norm_topk_prob=True,
            mlp_only_layers=[1], use_sliding_window=True, sliding_window=9, tie_word_embeddings=True, **rope(1e6)),
    }


def olmoe():
    published, saved = family("Olmoe")
    return {
        "olmoe-published": published(
            change("norm_topk_prob", to=True), change("rms_norm_eps", to=0.5), num_experts=4, num_experts_per_tok=2,
            num_key_value_heads=4),
        "olmoe-saved": saved(
            change("norm_topk_prob", to=False), change("clip_qkv", to=None), change("attention_bias", to=False), num_experts=6,
            num_experts_per_tok=3, norm_topk_prob=True, clip_qkv=0.6, attention_bias=True, num_key_value_heads=2, **rope(5e5)),
    }


def granitemoe():
    published, saved = family("GraniteMoe")
    scales = dict(embedding_multiplier=3.0, attention_multiplier=0.4, residual_multiplier=0.6, logits_scaling=0.7)
    each = [change(k, to=1.1 * v) for k, v in scales.items()]
    return {
        "granitemoe-published": published(*each, num_local_experts=4, **scales, **rope(5e6)),
        "granitemoe-saved": saved(
            *each, change("attention_bias", to=False), num_local_experts=6, num_experts_per_tok=3, attention_bias=True,
            **scales, **rope(**LLAMA3)),
    }


def with_next(config, tensors):
    """Adds a multi-token prediction head after the last layer, as it is published."""
    config, tensors = four(config, tensors)
    config["num_nextn_predict_layers"] = config.pop("num_mtp_layers", 1)
    return config, next_layer(config, tensors)


def glm4_moe():
    published, saved = family("Glm4Moe")
    whole = published(
        change("routed_scaling_factor", to=1.0), change("partial_rotary_factor", to=1.0), style=with_next,
        n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=64, routed_scaling_factor=1.5, head_dim=32,
        attention_bias=True, use_qk_norm=True, first_k_dense_replace=1, **rope(1e6, partial_rotary_factor=0.5))
    whole.limit = WITH_HEAD
    return {
        "glm4_moe-published": whole,
        "glm4_moe-saved": saved(
            change("n_group", to=2), change("topk_group", to=3), change("norm_topk_prob", to=True), n_shared_experts=2, moe_intermediate_size=16, first_k_dense_replace=0, head_dim=16,
            **grouped("n_routed_experts"), **rope(1e4, partial_rotary_factor=0.5)),
    }


def dots1():
    published, saved = family("Dots1")
    return {
        "dots1-published": published(
            change("routed_scaling_factor", to=1.0), change("norm_topk_prob", to=False), n_routed_experts=4, head_dim=32,
            num_experts_per_tok=2, n_shared_experts=1, moe_intermediate_size=64, routed_scaling_factor=2.5,
            norm_topk_prob=True, first_k_dense_replace=1, sliding_window=None),
        "dots1-saved": saved(
            change("n_group", to=2), change("sliding_window", to=12), change("attention_bias", to=False), n_shared_experts=2,
            moe_intermediate_size=16, first_k_dense_replace=1, sliding_window=9, attention_bias=True, head_dim=16,
            **layers(*"sfs"), **grouped("n_routed_experts"), **rope(1e6)),
    }


def minimax_m2():
    published, saved = family("MiniMaxM2", num_experts_per_tok=2)

    def rotary_dim(config, tensors):
        part = config["rope_parameters"].pop("partial_rotary_factor")
        config, tensors = four(config, tensors)
        return dict(config, rotary_dim=int(config["head_dim"] * part)), tensors

    return {
        "minimax_m2-published": published(
            change("num_experts_per_tok", to=1), change("rms_norm_eps", to=0.5), style=rotary_dim, num_local_experts=4,
            head_dim=32, **rope(5e6, partial_rotary_factor=0.5)),
        "minimax_m2-saved": saved(
            change("rope_parameters", "partial_rotary_factor", to=0.5), num_local_experts=8, num_key_value_heads=2, head_dim=16,
            tie_word_embeddings=True, **rope(1e4, partial_rotary_factor=0.75)),
    }


def solar_open():
    published, saved = family("SolarOpen")
    return {
        "solar_open-published": published(
            change("routed_scaling_factor", to=1.5), n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=64,
            head_dim=32, **rope(1e6)),
        "solar_open-saved": saved(
            change("n_group", to=2), change("attention_bias", to=False), n_shared_experts=2, moe_intermediate_size=16,
            head_dim=16, attention_bias=True, tie_word_embeddings=True, **grouped("n_routed_experts"), **rope(1e4)),
    }


def exaone_moe():
    published, saved = family("ExaoneMoe")

    def pattern(config, tensors):
        config, tensors = four(config, tensors)
        config.pop("layer_types")
        config.update(sliding_window_pattern=2, num_nextn_predict_layers=1)
        # The first layer, which slides and has no experts, and what joins the inputs.
        return config, {**tensors, **flipped(tensors, "model.layers.0.", "mtp.layers.0."), **head(
            "mtp.", config["hidden_size"], RULES, vector="pre_fc_norm_embedding", state="pre_fc_norm_hidden", norm="norm", join="fc")}

    return {
        "exaone_moe-published": published(
            change("sliding_window", to=12), change("routed_scaling_factor", to=1.0), style=pattern, num_experts=4,
            num_experts_per_tok=2, moe_intermediate_size=64, sliding_window=9, sliding_window_pattern=2, **rope(1e6)),
        "exaone_moe-saved": saved(
            change("n_group", to=2), change("layer_types", to=["sliding_attention"] * 3), num_shared_experts=2,
            moe_intermediate_size=16, sliding_window=9, mlp_layer_types=["sparse", "dense", "sparse"], **layers(*"sfs"),
            **grouped("num_experts"), **rope(1e4)),
    }


def ernie4_5_moe():
    published, saved = family("Ernie4_5_Moe")
    return {
        "ernie4_5_moe-published": published(
            change("moe_k", to=1), change("rope_theta", to=100.0), moe_num_experts=4, moe_k=2, moe_intermediate_size=64,
            moe_num_shared_experts=1, tie_word_embeddings=True, **rope(5e5)),
        "ernie4_5_moe-saved": saved(
            change("moe_k", to=2), change("use_bias", to=False), moe_num_experts=6, moe_k=3,
            moe_intermediate_size=16, moe_num_shared_experts=2, use_bias=True, moe_layer_interval=2,
            num_hidden_layers=4, moe_layer_start_index=0, **rope(1e4)),
    }


VARIANTS = {
    **mixtral(), **qwen2_moe(), **olmoe(), **granitemoe(), **glm4_moe(), **dots1(), **minimax_m2(), **solar_open(),
    **exaone_moe(), **ernie4_5_moe(),
}

if __name__ == "__main__":
    tiny.main(VARIANTS)
