"""What the scripts of plain decoders share: sizes, and the stored forms of a configuration.

There are two checkpoints of each model type: the published form with the options of published models, and the saved
form with every optional feature on. Windows are smaller than the texts.
"""

import reference  # first: keeps transformers offline

import transformers

import checkpoint
from tiny import AROUND_ZERO, Variant

VOCAB = 128
# The published form has rows of whole groups of every quantized format, the saved one is small.
PUBLISHED = dict(
    vocab_size=VOCAB, hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0,
    tie_word_embeddings=False,
)
SAVED = dict(PUBLISHED, hidden_size=32, num_hidden_layers=3, num_key_value_heads=1)

# Norms that scale by 1 + w, below embeddings that are scaled up. A larger last norm spreads the logits.
OFFSET = (
    (r"(^|\.)model\.norm\.weight$", lambda normal: 2.2 + 0.15 * normal),
    (r"layers\.\d+\..*norm\.weight$", AROUND_ZERO),
    (r"embed_tokens\.weight$", lambda normal: 0.03 * normal),
)


def four(config, tensors):
    """Stores a checkpoint with the keys of transformers 4."""
    return checkpoint.four(config), tensors


def without(*keys):
    """Stores a checkpoint with the keys of transformers 4, without some: those that publishers leave out."""

    def style(config, tensors):
        config = checkpoint.four(config)
        for key in keys:
            config.pop(key)
        return config, tensors

    return style


def family(name, rules=(), config=None, **common):
    """Returns a function that makes variants of a model type: published(matters, ...) and saved(matters, ...).

    config names its class of configurations, if it differs from name.
    """
    kind = getattr(transformers, name + "ForCausalLM")
    config = getattr(transformers, (config or name) + "Config")

    def variant(base, style, matters, more):
        values = {**base, **common, **more}
        return Variant(lambda: kind(config(**values)), *([style] if style else []), rules=rules, matters=list(matters))

    def published(*matters, style=four, **more):
        return variant(PUBLISHED, style, matters, more)

    def saved(*matters, **more):
        return variant(SAVED, None, matters, more)

    return published, saved


def rope(theta=10000.0, kind="default", **more):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": theta, **more}}


def layers(*kinds):
    """Returns layer_types of f(ull) and s(liding) layers."""
    return {"layer_types": [{"f": "full_attention", "s": "sliding_attention"}[k] for k in kinds]}
