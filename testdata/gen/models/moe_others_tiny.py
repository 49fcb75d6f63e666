"""Writes the tiny checkpoints of mixtures of experts with routers or attention of their own, and their goldens.

    moe_others_tiny.py [NAME...]
"""

import reference  # first: keeps transformers offline

from transformers import Llama4Config, Llama4ForConditionalGeneration

import checkpoint
import tiny
from dense import PUBLISHED, layers, rope
from moe import RULES, WITH_HEAD, family, flipped, four, grouped, head
from tiny import Variant, change


def phimoe():
    published, saved = family("Phimoe", num_experts_per_tok=2)

    def long(short, long, context, **more):
        return rope(1e4, kind="longrope", short_factor=[short + 0.25 * i for i in range(8)], original_max_position_embeddings=context,
                    long_factor=[long + 0.25 * i for i in range(8)], **more)

    def su(config, tensors):
        config, tensors = four(config, tensors)
        config["original_max_position_embeddings"] = config["rope_scaling"]["original_max_position_embeddings"]
        return config, tensors

    return {
        "phimoe-published": published(
            change("router_jitter_noise", to=0.5), change("rms_norm_eps", to=0.5), change("rope_scaling", "short_factor", to=[1.0] * 8),
            style=su, num_local_experts=4, **long(1.5, 2.0, 64, short_mscale=1.19, long_mscale=1.19)),
        "phimoe-saved": saved(
            change("sliding_window", to=12), change("attention_bias", to=False), change("lm_head_bias", to=False),
            change("rope_parameters", "short_mscale", to=1.0), change("router_jitter_noise", to=0.01),
            num_local_experts=6, router_jitter_noise=0.4, head_dim=16, sliding_window=9, attention_bias=True, lm_head_bias=True,
            **long(1.0, 3.0, 64, short_mscale=1.3, long_mscale=1.7)),
        # The text is longer than 32. The lists are equal: transformers uses the short one for all texts, publishers do not.
        "long-phimoe": saved(
            change("rope_parameters", "long_mscale", to=1.1), num_local_experts=4, head_dim=16,
            **long(1.5, 1.5, 32, short_mscale=1.1, long_mscale=1.5)),
    }


CHUNKS = dict(attention_chunk_size=8, floor_scale=12, attn_scale=0.5, intermediate_size_mlp=96, head_dim=16)
TOWER = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=4,
             vision_output_dim=32, projector_input_dim=16, projector_output_dim=16)
EXPERTS = ((r"gate_up_proj$|experts\.down_proj$", lambda normal: 0.2 * normal),)


def llama4():
    """Returns the whole of a multimodal checkpoint, and a text model with every feature on."""
    _, saved = family("Llama4", config="Llama4Text", rules=EXPERTS)

    def make():
        text = dict(PUBLISHED, num_hidden_layers=3, num_local_experts=4, num_experts_per_tok=1, no_rope_layer_interval=2,
                    interleave_moe_layer_step=2, **CHUNKS, **rope(5e5))
        return Llama4ForConditionalGeneration(Llama4Config(text_config=text, vision_config=TOWER, tie_word_embeddings=False))

    def old(config, tensors):
        text, _ = four(config["text_config"], tensors)
        config["text_config"] = {k: v for k, v in text.items() if k not in ("layer_types", "moe_layers", "no_rope_layers")}
        config["torch_dtype"] = config.pop("dtype", "bfloat16")
        return config, tensors

    of = lambda key, to: change("text_config", key, to=to)
    whole = Variant(make, old, rules=(*EXPERTS, *RULES), matters=[
        of("attention_chunk_size", 16), of("floor_scale", 64), of("use_qk_norm", False), of("no_rope_layer_interval", 3)])
    return {
        "llama4-published": whole,
        "llama4-saved": saved(
            change("attn_scale", to=0.1), change("num_experts_per_tok", to=1), change("attention_bias", to=False),
            change("attn_temperature_tuning", to=False), change("layer_types", to=["chunked_attention"] * 3),
            num_local_experts=6, num_experts_per_tok=2, attention_bias=True, moe_layers=[0, 2], no_rope_layers=[1, 0, 1],
            layer_types=["chunked_attention", "full_attention", "full_attention"], **CHUNKS, **rope(1e4)),
    }


def both(full, sliding):
    """Returns ropes of full and of sliding layers: pairs (theta, part of a head)."""
    of = lambda theta, part, **more: {"rope_type": "default", "rope_theta": theta, "partial_rotary_factor": part, **more}
    return {"rope_parameters": {"full_attention": of(**full) if isinstance(full, dict) else of(*full), "sliding_attention": of(*sliding)}}


def laguna():
    published, saved = family("Laguna", sliding_window=9)
    yarn = dict(theta=1e4, part=0.5, rope_type="yarn", factor=4.0, original_max_position_embeddings=32, beta_fast=4.0, beta_slow=1.0)
    rope_of = lambda kind, key, to: change("rope_parameters", kind, key, to=to)

    def old(config, tensors):
        ropes = config.pop("rope_parameters")
        config, tensors = four(config, tensors)
        return dict(config, rope_parameters=ropes), tensors

    return {
        "laguna-published": published(
            change("moe_routed_scaling_factor", to=1.0), change("sliding_window", to=12),
            rope_of("full_attention", "partial_rotary_factor", 1.0), rope_of("sliding_attention", "rope_theta", 100.0), style=old,
            num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64, shared_expert_intermediate_size=32, head_dim=16,
            num_hidden_layers=3, num_attention_heads_per_layer=[2, 4, 4], moe_routed_scaling_factor=1.8, **layers(*"fss"),
            **both((5e5, 0.5), (1e4, 1.0))),
        "laguna-saved": saved(
            change("moe_router_logit_softcapping", to=0.0), change("attention_bias", to=False),
            rope_of("full_attention", "factor", 2.0), change("layer_types", to=["sliding_attention"] * 3),
            num_experts=6, num_experts_per_tok=3, moe_intermediate_size=16, shared_expert_intermediate_size=24, head_dim=16,
            num_attention_heads_per_layer=[2, 4, 3], attention_bias=True, gating="per-element", moe_router_logit_softcapping=0.8,
            mlp_layer_types=["sparse", "dense", "sparse"], **layers(*"fsf"), **both(yarn, (1e4, 0.75))),
    }


def mimo_v2_flash():
    published, saved = family("MiMoV2Flash")

    def old(config, tensors):
        """Stores a checkpoint with the publisher's keys."""
        ropes = config.pop("rope_parameters")
        config, tensors = four(config, tensors)
        full, swa = ropes["full_attention"], ropes["sliding_attention"]
        kinds, mlps = config["layer_types"], config["mlp_layer_types"]
        config.update(
            rope_parameters=ropes, swa_rope_theta=swa["rope_theta"], partial_rotary_factor=full["partial_rotary_factor"],
            hybrid_layer_pattern=[int(k == "sliding_attention") for k in kinds], moe_layer_freq=[int(k == "sparse") for k in mlps],
            swa_num_attention_heads=config["num_attention_heads"], swa_num_key_value_heads=2 * config["num_key_value_heads"],
            swa_head_dim=config["head_dim"], swa_v_head_dim=config["v_head_dim"], sliding_window_size=config["sliding_window"] - 1,
            add_swa_attention_sink_bias=True, add_full_attention_sink_bias=False, layernorm_epsilon=config["rms_norm_eps"],
            scoring_func="sigmoid", topk_method="noaux_tc", n_shared_experts=None, routed_scaling_factor=None, rope_theta=full["rope_theta"])
        # Heads have a layer that slides, as the second one, without experts, as the first one.
        name, hidden = "model.mtp.layers.0.", config["hidden_size"]
        layer = {n: t for n, t in flipped(tensors, "model.layers.1.", name).items() if ".mlp." not in n}
        layer |= {n: t for n, t in flipped(tensors, "model.layers.0.", name).items() if ".mlp." in n}
        rules = ((r"post_attention_layernorm", "pre_mlp_layernorm"), (r"sinks$", "attention_sink_bias"))
        first = {**checkpoint.rename(layer, *rules), **head(
            name, hidden, RULES, vector="enorm", state="hnorm", norm="final_layernorm", join="eh_proj")}
        return config, {**tensors, **first, "model.mtp.layers.1.enorm.weight": first[name + "enorm.weight"]}

    rope_of = lambda kind, key, to: change("rope_parameters", kind, key, to=to)
    whole = published(
        change("attention_value_scale", to=1.0), change("sliding_window_size", to=12),
        rope_of("sliding_attention", "rope_theta", 100.0), style=old, num_hidden_layers=3, num_key_value_heads=1,
        n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=64, head_dim=32, v_head_dim=16, sliding_window=9,
        attention_value_scale=0.6, **layers(*"fsf"), **both((5e6, 0.34), (1e4, 0.34)))
    whole.limit = WITH_HEAD
    return {
        "mimo_v2_flash-published": whole,
        "mimo_v2_flash-saved": saved(
            change("routed_scaling_factor", to=1.0), change("n_group", to=2), change("attention_bias", to=False),
            change("sliding_window", to=12), rope_of("full_attention", "partial_rotary_factor", 1.0),
            moe_intermediate_size=16, head_dim=32, v_head_dim=16, sliding_window=9, attention_bias=True, num_key_value_heads=2,
            mlp_layer_types=["sparse", "dense", "sparse"], **layers(*"sfs"), **grouped("n_routed_experts"),
            **both((1e4, 0.5), (1e6, 0.75))),
    }


VARIANTS = {**phimoe(), **llama4(), **laguna(), **mimo_v2_flash()}

if __name__ == "__main__":
    tiny.main(VARIANTS)
