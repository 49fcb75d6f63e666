"""Writes the tiny checkpoints of further plain decoders, with random weights, and their goldens.

    dense_more_tiny.py [NAME...]
"""

import reference  # first: keeps transformers offline

from transformers import Mistral3Config, Mistral3ForConditionalGeneration

import checkpoint
import tiny
from dense import PUBLISHED, family, four, layers, rope, without
from tiny import Variant, change

LLAMA3 = dict(kind="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
YARN = dict(kind="yarn", factor=8.0, original_max_position_embeddings=16, beta_fast=4.0, beta_slow=1.0)


def no_layer_types(config, tensors):
    """Stores a checkpoint as saved, without the types of its layers."""
    return {k: v for k, v in config.items() if k != "layer_types"}, tensors


def ministral():
    published, saved = family("Ministral", sliding_window=9, head_dim=16)
    return {
        "ministral-published": published(
            change("sliding_window", to=12), change("sliding_window", to=None), style=no_layer_types, **rope(1e6)),
        "ministral-saved": saved(
            change("layer_types", to=["sliding_attention"] * 3), head_dim=12, tie_word_embeddings=True, **layers(*"sfs"),
            **rope(1e4)),
    }


VISION = dict(model_type="pixtral", hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=8,
              patch_size=4, head_dim=4)


def mistral3():
    """Returns the whole of a multimodal checkpoint with the names of Mistral Small 3."""

    def make():
        text = dict(PUBLISHED, model_type="mistral", head_dim=24, sliding_window=None, **rope(1e6))
        return Mistral3ForConditionalGeneration(Mistral3Config(
            text_config=text, vision_config=VISION, tie_word_embeddings=False, image_token_index=3))

    def old(config, tensors):
        config["text_config"] = checkpoint.four(config["text_config"])
        config["torch_dtype"] = config.pop("dtype", "bfloat16")
        return config, tensors

    return {"ministral3-mistral3": Variant(make, old, matters=[change("text_config", "rope_theta", to=1e4)])}


def ministral3():
    published, saved = family("Ministral3", head_dim=16)
    grows = rope(1e4, **YARN, llama_4_scaling_beta=0.5, mscale=1.0, mscale_all_dim=1.0)
    return {
        "ministral3-published": published(
            change("rope_parameters", "llama_4_scaling_beta", to=0.0), change("rope_parameters", "factor", to=4.0),
            change("rope_parameters", "original_max_position_embeddings", to=32), style=lambda *stored: stored, **grows),
        "ministral3-saved": saved(
            change("rope_parameters", "mscale_all_dim", to=0.5), tie_word_embeddings=True, sliding_window=9, **grows),
        **mistral3(),
    }


def glm():
    published, saved = family("Glm", head_dim=16, pad_token_id=0)
    return {
        "glm-published": published(change("partial_rotary_factor", to=1.0), change("rope_theta", to=100.0),
                                   style=partial_on_top, **rope(1e4, partial_rotary_factor=0.5)),
        "glm-saved": saved(
            change("rope_parameters", "partial_rotary_factor", to=0.5), attention_bias=False, tie_word_embeddings=True,
            **rope(1e4, partial_rotary_factor=0.75)),
    }


def partial_on_top(config, tensors):
    """Stores a checkpoint with the keys of transformers 4, which had the part that rotates beside the rope."""
    part = config["rope_parameters"].pop("partial_rotary_factor")
    return dict(checkpoint.four(config), partial_rotary_factor=part), tensors


def glm4():
    published, saved = family("Glm4", head_dim=16, pad_token_id=0)
    return {
        "glm4-published": published(
            change("partial_rotary_factor", to=1.0), style=partial_on_top, attention_bias=False,
            **rope(1e4, partial_rotary_factor=0.5)),
        "glm4-saved": saved(
            change("rope_parameters", "partial_rotary_factor", to=0.5), attention_bias=True,
            **rope(1e4, partial_rotary_factor=0.75)),
    }


def cohere():
    published, saved = family("Cohere", layer_norm_eps=1e-2)
    return {
        "cohere-published": published(
            change("logit_scale", to=2.0), change("layer_norm_eps", to=1.0), tie_word_embeddings=True, logit_scale=1.5,
            **rope(1e4)),
        "cohere-saved": saved(
            change("use_qk_norm", to=False), change("attention_bias", to=False), num_key_value_heads=2, use_qk_norm=True,
            attention_bias=True, logit_scale=0.75, **rope(**LLAMA3)),
    }


def cohere2():
    published, saved = family("Cohere2", sliding_window=9)

    def old(config, tensors):
        return dict(without("layer_types")(config, tensors)[0], sliding_window_pattern=4, rotary_pct=1.0), tensors

    return {
        "cohere2-published": published(
            change("sliding_window", to=12), change("sliding_window_pattern", to=2), change("logit_scale", to=2.0), style=old,
            tie_word_embeddings=True, logit_scale=1.5, num_hidden_layers=4, **layers(*"sssf"), **rope(5e4)),
        "cohere2-saved": saved(
            change("layer_types", to=["sliding_attention"] * 3), change("attention_bias", to=False), attention_bias=True,
            logit_scale=0.75, **layers(*"sfs"), **rope(1e4)),
    }


def exaone4():
    published, saved = family("Exaone4")

    def old(config, tensors):
        return dict(checkpoint.four(config), sliding_window_pattern="LLLG"), tensors

    return {
        "exaone4-published": published(
            change("sliding_window", to=12), change("layer_types", to=["sliding_attention"] * 4), style=old, num_hidden_layers=4,
            sliding_window=9, **layers(*"sssf"), **rope(1e6)),
        "exaone4-saved": saved(
            change("rope_parameters", "factor", to=2.0), sliding_window=None, head_dim=12, **layers(*"fff"), **rope(**LLAMA3)),
    }


def seed_oss():
    published, saved = family("SeedOss", head_dim=16)
    return {
        "seed_oss-published": published(change("rope_theta", to=100.0), attention_bias=True, **rope(1e4)),
        "seed_oss-saved": saved(
            change("attention_out_bias", to=False), change("mlp_bias", to=False), change("attention_bias", to=False),
            attention_bias=True, attention_out_bias=True, mlp_bias=True, tie_word_embeddings=True, **rope(1e6)),
    }


def ernie4_5():
    published, saved = family("Ernie4_5", head_dim=16)
    return {
        "ernie4_5-published": published(change("rope_theta", to=100.0), tie_word_embeddings=True, **rope(5e5)),
        "ernie4_5-saved": saved(change("use_bias", to=False), use_bias=True, **rope(1e4)),
    }


def hunyuan():
    published, saved = family("HunYuanDenseV1", head_dim=16)
    alpha = rope(1e4, kind="dynamic", alpha=50.0, factor=1.0, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0)
    return {
        "hunyuan_v1_dense-published": published(
            change("rope_scaling", "alpha", to=2.0), change("rms_norm_eps", to=0.5), tie_word_embeddings=True, **alpha),
        "hunyuan_v1_dense-saved": saved(change("attention_bias", to=False), attention_bias=True, **rope(1e4)),
    }


def arcee():
    published, saved = family("Arcee")
    return {
        "arcee-published": published(change("rope_scaling", "factor", to=2.0), **rope(
            1e4, kind="yarn", factor=4.0, original_max_position_embeddings=32, beta_fast=4.0)),
        "arcee-saved": saved(
            change("attention_bias", to=False), change("mlp_bias", to=False), attention_bias=True, mlp_bias=True, head_dim=12,
            tie_word_embeddings=True, **rope(1e4)),
    }


VARIANTS = {**ministral(), **ministral3(), **glm(), **glm4(), **cohere(), **cohere2(), **exaone4(), **seed_oss(), **ernie4_5(),
            **hunyuan(), **arcee()}

if __name__ == "__main__":
    tiny.main(VARIANTS)
