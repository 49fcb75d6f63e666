"""Writes the tiny checkpoints of more mixtures of experts, with random weights, and their goldens.

    moe_more_tiny.py [NAME...]
"""

import reference  # first: keeps transformers offline

import tiny
from dense import layers, rope
from moe import family, four, mxfp4, to_mxfp4
from tiny import change


def hunyuan_v1_moe():
    published, saved = family("HunYuanMoEV1", head_dim=16)
    alpha = rope(1e4, kind="dynamic", alpha=50.0, factor=1.0, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0)

    def per_layer(config, tensors):
        config, tensors = four(config, tensors)
        return dict(config, moe_topk=[config["moe_topk"]] * config["num_hidden_layers"]), tensors

    return {
        "hunyuan_v1_moe-published": published(
            change("rope_scaling", "alpha", to=2.0), change("rms_norm_eps", to=0.5), style=per_layer, num_experts=4, moe_topk=2,
            tie_word_embeddings=True, **alpha),
        "hunyuan_v1_moe-saved": saved(
            change("attention_bias", to=False), change("moe_topk", to=2), num_experts=6, moe_topk=3, attention_bias=True,
            **rope(1e4)),
    }


def cohere2_moe():
    published, saved = family("Cohere2Moe", sliding_window=9, rules=((r"embed_tokens", lambda normal: 0.5 * normal),))

    def old(config, tensors):
        config, tensors = four(config, tensors)
        config.pop("layer_types")
        return config, tensors

    return {
        "cohere2_moe-published": published(
            change("sliding_window", to=12), change("logit_scale", to=2.0), change("expert_selection_fn", to="sigmoid"),
            change("sliding_window_pattern", to=2), style=old, logit_scale=1.5, num_experts=4, num_experts_per_tok=2,
            head_dim=16, num_hidden_layers=3, sliding_window_pattern=3, **rope(5e4)),
        "cohere2_moe-saved": saved(
            change("norm_topk_prob", to=True), change("shared_expert_combination_strategy", to="sum"),
            change("prefix_dense_sliding_window_pattern", to=2), change("attention_bias", to=False),
            expert_selection_fn="sigmoid", norm_topk_prob=False, num_shared_experts=2, attention_bias=True, rms_norm_eps=1e-5,
            num_experts=6, num_experts_per_tok=3, head_dim=16, logit_scale=1.25, prefix_dense_intermediate_size=48,
            mlp_layer_types=["dense", "sparse", "sparse"], **layers(*"fsf"), **rope(1e4)),
    }


def afmoe():
    published, saved = family("Afmoe", sliding_window=9, rules=((r"embed_tokens", lambda normal: 0.1 * normal),))

    def old(config, tensors):
        config, tensors = four(config, tensors)
        config.pop("layer_types")
        return dict(config, score_func="sigmoid", route_norm=True, n_group=1, topk_group=1), tensors

    return {
        "afmoe-published": published(
            change("sliding_window", to=12), change("route_scale", to=1.0), change("mup_enabled", to=False), style=old,
            num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64, head_dim=32, num_shared_experts=1, route_scale=1.8,
            mup_enabled=True, global_attn_every_n_layers=2, **rope(1e4)),
        "afmoe-saved": saved(
            change("num_experts_per_tok", to=2), change("layer_types", to=["sliding_attention"] * 3),
            change("attention_bias", to=False), num_experts=6, num_experts_per_tok=3, moe_intermediate_size=16, head_dim=16,
            num_shared_experts=2, num_dense_layers=1, attention_bias=True, **layers(*"sfs"), **rope(1e6)),
    }


def gpt_oss():
    published, saved = family("GptOss", sliding_window=9, rules=((r"experts\.(gate_up|down)_proj$", mxfp4),))
    yarn = dict(kind="yarn", beta_fast=4.0, beta_slow=0.25, truncate=False)

    def blocks(config, tensors):
        config, tensors = four(config, tensors)
        config.pop("swiglu_alpha")
        config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": [
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}
        out = {}
        for name, tensor in tensors.items():
            if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
                out[name + "_blocks"], out[name + "_scales"] = to_mxfp4(tensor.float())
            else:
                out[name] = tensor
        return config, out

    return {
        "gpt_oss-published": published(
            change("sliding_window", to=12), change("swiglu_limit", to=2.0), change("rope_scaling", "truncate", to=True),
            change("layer_types", to=["full_attention", "sliding_attention"]), style=blocks, num_local_experts=4,
            num_experts_per_tok=2, head_dim=32, swiglu_limit=0.9, **layers(*"sf"),
            **rope(1.5e5, factor=4.0, original_max_position_embeddings=64, **yarn)),
        "gpt_oss-saved": saved(
            change("num_experts_per_tok", to=2), change("swiglu_alpha", to=1.0), change("swiglu_limit", to=7.0),
            change("rope_parameters", "truncate", to=True), num_local_experts=6, num_experts_per_tok=3, head_dim=16,
            swiglu_alpha=2.5, swiglu_limit=0.7, **layers(*"fsf"),
            **rope(1e4, factor=8.0, original_max_position_embeddings=64, **yarn)),
    }


VARIANTS = {**hunyuan_v1_moe(), **cohere2_moe(), **afmoe(), **gpt_oss()}

if __name__ == "__main__":
    tiny.main(VARIANTS)
