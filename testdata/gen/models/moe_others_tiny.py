"""Writes the tiny checkpoints of mixtures of experts with routers or attention of their own, and their goldens.

    moe_others_tiny.py [NAME...]
"""

import reference  # first: keeps transformers offline

from transformers import Llama4Config, Llama4ForConditionalGeneration

import tiny
from dense import PUBLISHED, rope
from moe import RULES, family, four
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


VARIANTS = {**phimoe(), **llama4()}

if __name__ == "__main__":
    tiny.main(VARIANTS)
