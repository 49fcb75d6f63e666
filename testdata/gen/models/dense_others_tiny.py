"""Writes the tiny checkpoints of plain decoders with other norms and MLPs, with random weights, and their goldens.

    dense_others_tiny.py [NAME...]
"""

import reference  # first: keeps transformers offline

import checkpoint
import tiny
from dense import family, rope
from dense_tiny import LLAMA3, YARN
from tiny import AROUND_ZERO, change

LAYER_NORM = ((r"(norm|norms\.\d+)\.bias$", lambda normal: 0.15 * normal), (r"norms\.\d+\.weight$", lambda normal: 0.9 + 0.3 * normal))


def partial_on_top(config, tensors):
    """Stores a checkpoint with the keys of transformers 4, which had the part that rotates beside the rope."""
    part = config["rope_parameters"].pop("partial_rotary_factor")
    return dict(checkpoint.four(config), partial_rotary_factor=part), tensors


def apertus():
    """Returns checkpoints whose activation functions differ by layer; beta and eps are constants of the type."""
    rules = ((r"act_fn\.alpha_p$", lambda normal: 0.2 + 0.5 * normal), (r"act_fn\.alpha_n$", lambda normal: -0.8 + 0.5 * normal),
             (r"act_fn\.beta$", lambda normal: 0 * normal + 0.5), (r"act_fn\.eps$", lambda normal: 0 * normal - 1e-6))
    published, saved = family("Apertus", rules=rules)
    return {
        "apertus-published": published(change("rope_scaling", "factor", to=2.0), **rope(**LLAMA3)),
        "apertus-saved": saved(
            change("attention_bias", to=False), change("rms_norm_eps", to=0.5), attention_bias=True, **rope(1e4)),
    }


def starcoder2():
    published, saved = family("Starcoder2", rules=LAYER_NORM)
    return {
        "starcoder2-published": published(
            change("sliding_window", to=12), change("norm_epsilon", to=1.0), use_bias=True, sliding_window=9,
            tie_word_embeddings=True, **rope(1e5)),
        "starcoder2-saved": saved(
            change("rope_parameters", "rope_theta", to=100.0), use_bias=False, sliding_window=None, num_key_value_heads=4,
            **rope(1e4)),
    }


def stablelm():
    published, saved = family("StableLm", rules=LAYER_NORM)
    return {
        "stablelm-published": published(
            change("partial_rotary_factor", to=0.5), change("layer_norm_eps", to=1.0), style=partial_on_top, use_qkv_bias=True,
            **rope(1e4, partial_rotary_factor=0.25)),
        "stablelm-saved": saved(
            change("qk_layernorm", to=False), change("use_qkv_bias", to=False), qk_layernorm=True, use_parallel_residual=True,
            use_qkv_bias=True, num_key_value_heads=2, **rope(1e4, partial_rotary_factor=0.5)),
    }


def nemotron():
    published, saved = family("Nemotron", rules=((r"norm\.weight$", AROUND_ZERO), *LAYER_NORM))
    return {
        "nemotron-published": published(
            change("partial_rotary_factor", to=1.0), change("norm_eps", to=1.0), style=partial_on_top,
            **rope(1e4, partial_rotary_factor=0.5)),
        "nemotron-saved": saved(
            change("attention_bias", to=False), change("mlp_bias", to=False), attention_bias=True, mlp_bias=True, head_dim=16,
            **rope(1e4, partial_rotary_factor=0.25)),
    }


def helium():
    published, saved = family("Helium")
    return {
        "helium-published": published(change("rope_theta", to=100.0), head_dim=16, num_key_value_heads=4, **rope(1e5)),
        "helium-saved": saved(
            change("attention_bias", to=False), change("mlp_bias", to=False), head_dim=8, attention_bias=True, mlp_bias=True,
            **rope(1e4)),
    }


def nanochat():
    published, saved = family("NanoChat")
    return {
        "nanochat-published": published(
            change("final_logit_softcapping", to=1.0), change("rope_theta", to=100.0), final_logit_softcapping=3.0,
            num_key_value_heads=4, **rope(1e4)),
        "nanochat-saved": saved(
            change("attention_bias", to=False), change("rms_norm_eps", to=0.5), attention_bias=True,
            final_logit_softcapping=None, **rope(**YARN)),
    }


def olmo():
    published, saved = family("Olmo")
    return {
        "olmo-published": published(
            change("clip_qkv", to=0.3), change("rope_theta", to=100.0), clip_qkv=0.8, num_key_value_heads=4, **rope(1e4)),
        "olmo-saved": saved(
            change("attention_bias", to=False), attention_bias=True, clip_qkv=None, num_key_value_heads=2,
            **rope(5e5)),
    }


VARIANTS = {**apertus(), **starcoder2(), **stablelm(), **nemotron(), **helium(), **nanochat(), **olmo()}

if __name__ == "__main__":
    tiny.main(VARIANTS)
