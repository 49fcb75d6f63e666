"""Writes the tiny checkpoints of the most used plain decoders, with random weights, and their goldens.

    dense_tiny.py [NAME...]
"""

import reference  # first: keeps transformers offline

import checkpoint
import tiny
from dense import OFFSET, family, four, layers, rope, without
from tiny import change

LLAMA3 = dict(kind="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
LONG = dict(kind="longrope", short_factor=[1.0, 1.2, 1.5, 1.9, 2.2, 2.6], long_factor=[1.0, 1.5, 2.5, 4.0, 6.0, 8.0])
YARN = dict(kind="yarn", factor=4.0, original_max_position_embeddings=32, attention_factor=1.2, beta_fast=2.0, beta_slow=0.5)


def qwen2():
    published, saved = family("Qwen2")
    return {
        "qwen2-published": published(
            change("sliding_window", to=12), change("max_window_layers", to=0), change("rope_theta", to=10000.0),
            style=without("layer_types"), use_sliding_window=True, sliding_window=9, max_window_layers=1, **rope(1e6)),
        "qwen2-saved": saved(
            change("sliding_window", to=12), change("layer_types", to=["full_attention"] * 3), use_sliding_window=True,
            sliding_window=9, tie_word_embeddings=True, **layers(*"sfs"), **rope(**LLAMA3)),
    }


def published_rope(config, tensors):
    """Stores a longrope as publishers do: with type, the part that rotates beside it."""
    config = checkpoint.four(config)
    scaling = config["rope_scaling"]
    config["partial_rotary_factor"] = scaling.pop("partial_rotary_factor")
    config["rope_scaling"] = {"type": "longrope", **{k: scaling[k] for k in ("short_factor", "long_factor")}}
    return config, tensors


def phi3():
    published, saved = family("Phi3")
    long = rope(10000.0, partial_rotary_factor=0.75, **LONG)
    return {
        "phi3-published": published(
            change("rope_scaling", "short_factor", to=[1.0] * 6),
            change("sliding_window", to=12), change("original_max_position_embeddings", to=32),
            style=published_rope, original_max_position_embeddings=64, sliding_window=9, **long),
        "phi3-saved": saved(
            change("rope_parameters", "partial_rotary_factor", to=0.5), num_key_value_heads=4, tie_word_embeddings=True,
            sliding_window=None, **rope(500.0, partial_rotary_factor=0.75)),
        # The context before scaling is shorter than the text.
        "long-phi3": published(
            change("original_max_position_embeddings", to=64), original_max_position_embeddings=32, sliding_window=None,
            **long),
    }


def gemma():
    published, saved = family("Gemma", rules=OFFSET, tie_word_embeddings=True)

    def first(config, tensors):
        return dict(checkpoint.four(config), hidden_act="gelu", hidden_activation=None), tensors

    return {
        "gemma-published": published(
            change("rms_norm_eps", to=0.1), style=first, head_dim=16, num_key_value_heads=1),
        "gemma-saved": saved(
            change("attention_bias", to=False), change("rope_parameters", "rope_theta", to=100.0), head_dim=24,
            attention_bias=True),
    }


def gemma2():
    published, saved = family("Gemma2", rules=OFFSET, tie_word_embeddings=True, sliding_window=9)
    return {
        "gemma2-published": published(
            change("sliding_window", to=12), change("attn_logit_softcapping", to=1.0),
            change("final_logit_softcapping", to=None), change("query_pre_attn_scalar", to=16),
            style=without("layer_types"), head_dim=16, query_pre_attn_scalar=24, attn_logit_softcapping=2.0,
            final_logit_softcapping=3.0),
        "gemma2-saved": saved(
            change("layer_types", to=["full_attention"] * 3), change("attention_bias", to=False), head_dim=24,
            query_pre_attn_scalar=24, attention_bias=True, **layers(*"sfs")),
    }


def granite():
    published, saved = family("Granite")
    scales = dict(embedding_multiplier=3.0, attention_multiplier=0.4, residual_multiplier=0.6, logits_scaling=0.7)
    each = [change(k, to=1.1 * v) for k, v in scales.items()]
    return {
        "granite-published": published(*each, **scales, **rope(5e6)),
        "granite-saved": saved(
            *each, change("attention_bias", to=False), change("mlp_bias", to=False), **scales, attention_bias=True,
            mlp_bias=True, tie_word_embeddings=True, **rope(**LLAMA3)),
    }


def olmo2():
    published, saved = family("Olmo2")
    return {
        "olmo2-published": published(change("rms_norm_eps", to=0.5), num_key_value_heads=4, **rope(5e5)),
        "olmo2-saved": saved(
            change("rope_parameters", "factor", to=3.0), change("attention_bias", to=False), num_key_value_heads=2,
            attention_bias=True, **rope(**YARN)),
    }


def olmo3():
    published, saved = family("Olmo3", sliding_window=9)
    both = {"rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 5e5}, "full_attention": {
        "rope_theta": 5e5, "rope_type": YARN["kind"], **{k: v for k, v in YARN.items() if k != "kind"}}}}

    def old(config, tensors):
        scaling = config.pop("rope_parameters")["full_attention"]
        config = checkpoint.four(config)
        return dict(config, rope_theta=scaling.pop("rope_theta"), rope_scaling=scaling), tensors

    return {
        "olmo3-published": published(
            change("sliding_window", to=12), change("rope_scaling", "factor", to=2.0), style=old, num_key_value_heads=4,
            num_hidden_layers=4, **both),
        "olmo3-saved": saved(
            change("rope_parameters", "full_attention", "factor", to=2.0), change("attention_bias", to=False),
            change("layer_types", to=["sliding_attention"] * 3), attention_bias=True, num_key_value_heads=2,
            **layers(*"sfs"), **both),
    }


def smollm3():
    published, saved = family("SmolLM3")
    return {
        "smollm3-published": published(
            change("no_rope_layers", to=[1] * 4), change("rope_theta", to=10000.0),
            num_hidden_layers=4, tie_word_embeddings=True, **rope(5e6)),
        "smollm3-saved": saved(
            change("sliding_window", to=12), change("no_rope_layers", to=[1, 1, 1]), change("mlp_bias", to=False),
            use_sliding_window=True, sliding_window=9, no_rope_layers=[0, 1, 0], attention_bias=True, mlp_bias=True, **layers(*"sff"),
            **rope(1e4)),
    }


VARIANTS = {**qwen2(), **phi3(), **gemma(), **gemma2(), **granite(), **olmo2(), **olmo3(), **smollm3()}

if __name__ == "__main__":
    tiny.main(VARIANTS)
