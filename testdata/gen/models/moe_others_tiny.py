"""Writes the tiny checkpoints of mixtures of experts with routers or attention of their own, and their goldens.

    moe_others_tiny.py [NAME...]
"""

import reference  # first: keeps transformers offline

import tiny
from dense import rope
from moe import family, four
from tiny import change


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


VARIANTS = {**phimoe()}

if __name__ == "__main__":
    tiny.main(VARIANTS)
