"""Writes the tiny checkpoints of types whose classes are not in transformers but equal one there, and their goldens.

    remote_tiny.py [NAME...]
"""

import reference  # first: keeps transformers offline

import remote
import tiny
from dense import family, rope
from dense_tiny import LLAMA3
from tiny import change

DYNAMIC = dict(kind="dynamic", factor=2.0)


def published_as(model_type):
    """Returns a function that makes variants of a type: the first of the sizes of dense.PUBLISHED, others of dense.SAVED."""
    of = remote.TYPES[model_type]
    published, saved = family(of.kind, **({"pad_token_id": 0} if of.kind == "Glm" else {}))

    def variant(*matters, small=False, **more):
        v = (saved if small else published)(*matters, **more)
        v.style = of.style(model_type)
        return v

    return variant


def chatglm():
    variant = published_as("chatglm")
    return {
        "chatglm-published": variant(
            change("rope_ratio", to=1.0), head_dim=16, attention_bias=True, **rope(5e4, partial_rotary_factor=0.5)),
        "chatglm-saved": variant(
            change("layernorm_epsilon", to=0.5), small=True, head_dim=8, attention_bias=False, **rope(1e4, partial_rotary_factor=0.5)),
    }


def qwen():
    variant = published_as("qwen")
    return {
        "qwen-published": variant(change("rotary_emb_base", to=100.0), num_key_value_heads=4, **rope(1e4)),
        "qwen-saved": variant(
            change("layer_norm_epsilon", to=0.5), small=True, num_key_value_heads=4, tie_word_embeddings=True, **rope(1e6)),
    }


def internlm2():
    variant = published_as("internlm2")
    return {
        "internlm2-published": variant(
            change("rope_theta", to=100.0), num_key_value_heads=2, **rope(1e6)),
        "internlm2-saved": variant(
            change("rms_norm_eps", to=0.5), small=True, attention_bias=True, num_key_value_heads=2, tie_word_embeddings=True,
            **rope(**DYNAMIC)),
    }


def exaone():
    variant = published_as("exaone")
    return {
        "exaone-published": variant(change("rope_scaling", "factor", to=2.0), **rope(**LLAMA3)),
        "exaone-saved": variant(
            change("rope_theta", to=100.0), small=True, head_dim=12, tie_word_embeddings=True, **rope(1e6)),
    }


VARIANTS = {**chatglm(), **qwen(), **internlm2(), **exaone()}

if __name__ == "__main__":
    tiny.main(VARIANTS)
