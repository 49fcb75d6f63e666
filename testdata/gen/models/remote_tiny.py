"""Writes the tiny checkpoints of types whose classes are not in transformers but equal one there, and their goldens.

    remote_tiny.py [NAME...]
"""

import reference  # first: keeps transformers offline

import decilm
import remote
import tiny
from dense import family, rope
from dense_others_tiny import LAYER_NORM
from dense_tiny import LLAMA3
from tiny import change

MOE = dict(num_experts=8, num_experts_per_tok=2, moe_intermediate_size=32)
# A head whose rows are of length 1: the last norm spreads the logits.
UNIT_HEAD = ((r"model\.norm\.weight$", lambda normal: 1.0 + 0.15 * normal),)
DYNAMIC = dict(kind="dynamic", factor=2.0)


def published_as(name, model_type=None, rules=()):
    """Returns a function that makes variants of a type, of the sizes of dense.PUBLISHED or dense.SAVED."""
    of = remote.TYPES[name]
    published, saved = family(of.kind, rules=rules, **({"pad_token_id": 0} if of.kind == "Glm" else {}))

    def variant(*matters, small=False, **more):
        v = (saved if small else published)(*matters, **more)
        make = v.make
        v.make, v.style = lambda: of.adapt(make()), of.style(model_type or name)
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


def baichuan():
    first, second = published_as("baichuan"), published_as("baichuan2", "baichuan", UNIT_HEAD)
    plain = dict(num_key_value_heads=4, **rope(1e4))
    return {
        "baichuan-published": second(change("rms_norm_eps", to=0.5), **plain),
        "baichuan-saved": first(change("rms_norm_eps", to=0.5), small=True, **plain),
    }


def minicpm():
    dense, moe = published_as("minicpm"), published_as("minicpm_moe", "minicpm")
    scales = dict(embedding_multiplier=3.0, residual_multiplier=0.6, attention_multiplier=0.25, logits_scaling=0.8)
    factors = dict(short_factor=[1.0, 1.1, 1.3, 1.6, 2.0, 2.5, 3.0, 3.6], long_factor=[1.0 + i for i in range(8)])
    return {
        "minicpm-published": dense(
            change("scale_emb", to=1.0), change("scale_depth", to=0.3), change("dim_model_base", to=40),
            change("rope_scaling", "short_factor", to=[1.0] * 8),
            **scales, **rope(1e4, "longrope", original_max_position_embeddings=64, **factors)),
        "minicpm-saved": moe(
            change("num_experts_per_tok", to=1), change("scale_depth", to=0.3), small=True, num_local_experts=4,
            num_experts_per_tok=2, tie_word_embeddings=True, **{**scales, "attention_multiplier": 8**-0.5, "embedding_multiplier": 1.2}, **rope(1e4)),
    }


def orion():
    variant = published_as("orion", rules=LAYER_NORM)
    whole = rope(1e4, partial_rotary_factor=1.0)
    return {
        "orion-published": variant(change("rms_norm_eps", to=1.0), change("rope_theta", to=100.0), num_key_value_heads=4, **whole),
        "orion-saved": variant(change("rms_norm_eps", to=1.0), small=True, tie_word_embeddings=True, **whole),
    }


def deepseek():
    variant = published_as("deepseek")
    return {
        "deepseek-published": variant(
            change("num_experts_per_tok", to=1), change("norm_topk_prob", to=True), num_key_value_heads=4, mlp_only_layers=[0],
            norm_topk_prob=False, shared_expert_intermediate_size=64, qkv_bias=False, **MOE, **rope(1e4)),
        "deepseek-saved": variant(
            change("norm_topk_prob", to=False), small=True, mlp_only_layers=[], norm_topk_prob=True,
            shared_expert_intermediate_size=128, qkv_bias=False, tie_word_embeddings=True,
            **{**MOE, "moe_intermediate_size": 64}, **rope(1e4)),
    }


def bailing_moe():
    variant = published_as("bailing_moe")
    return {
        "bailing_moe-published": variant(
            change("num_experts_per_tok", to=1), mlp_only_layers=[], norm_topk_prob=True, 
            shared_expert_intermediate_size=64, qkv_bias=False, **MOE, **rope(6e5)),
        "bailing_moe-saved": variant(
            change("norm_topk_prob", to=True), small=True, mlp_only_layers=[0], norm_topk_prob=False,
            shared_expert_intermediate_size=32, qkv_bias=True, tie_word_embeddings=True, **MOE, **rope(1e4)),
    }


def spelled():
    """Returns checkpoints of types that are other spellings of llama and qwen2."""
    first, third, xverse, mimo = (published_as(name) for name in ("internlm", "internlm3", "xverse", "mimo"))
    equal = dict(num_key_value_heads=4)
    return {
        "llama-internlm": first(change("rms_norm_eps", to=0.5), small=True, attention_bias=True, **equal, **rope(1e4)),
        "llama-internlm3": third(
            change("rope_scaling", "factor", to=4.0), small=True, attention_bias=True, mlp_bias=True, head_dim=12,
            **rope(**LLAMA3)),
        "llama-xverse": xverse(change("rms_norm_eps", to=0.5), small=True, **equal, **rope(1e4)),
        "qwen2-mimo": mimo(change("rope_theta", to=100.0), small=True, **rope(1e4)),
    }


def nemotron_nas():
    decilm.register()
    variant = published_as("nemotron-nas")

    def block(group, mult):
        attention = dict(n_heads_in_group=group, no_op=group is None, replace_with_linear=False, window_length=None)
        return dict(attention=attention, ffn=dict(ffn_mult=mult, no_op=mult is None, replace_with_linear=False))

    return {
        "nemotron_nas-published": variant(
            change("rope_scaling", "factor", to=2.0), num_hidden_layers=4,
            block_configs=[block(2, 2.0), block(None, 6.5), block(4, None), block(1, None)], **rope(**LLAMA3)),
        "nemotron_nas-saved": variant(
            change("rms_norm_eps", to=0.5), small=True, tie_word_embeddings=True, attention_bias=True, mlp_bias=True,
            block_configs=[block(None, 5.25), block(2, 1.0), block(1, None)], **rope(1e4)),
    }


VARIANTS = {**nemotron_nas(), **spelled(), **chatglm(), **qwen(), **internlm2(), **exaone(), **baichuan(), **minicpm(), **orion(), **deepseek(),
            **bailing_moe()}

if __name__ == "__main__":
    tiny.main(VARIANTS)
