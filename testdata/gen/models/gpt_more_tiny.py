"""Writes the tiny checkpoints of further models like GPT, with random weights, and their goldens.

    gpt_more_tiny.py [NAME...]
"""

import reference  # first: keeps transformers offline

import remote
import tiny
from dense import PUBLISHED, SAVED, family, four, rope
from gpt_tiny import NORMS, gpt2_keys
from tiny import Variant, change

import transformers

HEAD = NORMS + ((r"wte\.weight$|word_embeddings\.weight$", lambda normal: 0.12 * normal), (r"wpe\.weight$", lambda normal: 0.3 * normal))
UNTIED = NORMS + ((r"wte\.weight$|word_embeddings\.weight$", lambda normal: 0.5 * normal),)


def gpt_bigcode():
    def variant(values, style, *matters):
        make = lambda: transformers.GPTBigCodeForCausalLM(transformers.GPTBigCodeConfig(**values))
        return Variant(make, *([style] if style else []), rules=HEAD, matters=list(matters))

    return {
        "gpt_bigcode-published": variant(
            gpt2_keys(PUBLISHED), four, change("layer_norm_epsilon", to=0.5), change("activation_function", to="relu")),
        "gpt_bigcode-saved": variant(
            gpt2_keys(SAVED, n_inner=64, multi_query=False, scale_attn_weights=False, activation_function="gelu"), None,
            change("scale_attn_weights", to=True)),
    }


def gptj():
    def variant(values, rules, *matters):
        make = lambda: transformers.GPTJForCausalLM(transformers.GPTJConfig(**values))
        return Variant(make, four, rules=rules, matters=list(matters))

    return {
        "gptj-published": variant(
            gpt2_keys(PUBLISHED, rotary_dim=8, tie_word_embeddings=False), UNTIED, change("rotary_dim", to=4),
            change("activation_function", to="relu")),
        "gptj-saved": variant(
            gpt2_keys(SAVED, n_inner=64, rotary_dim=4, tie_word_embeddings=False), UNTIED,
            change("layer_norm_epsilon", to=0.5)),
    }


def phi():
    published, saved = family("Phi", rules=NORMS + ((r"layernorm\.weight$", lambda normal: 0.9 + 0.15 * normal),))

    first = published(
        change("rotary_dim", to=4), change("layer_norm_epsilon", to=0.5), style=remote.TYPES["phi-msft"].style("phi-msft"),
        num_key_value_heads=4, intermediate_size=256, **rope(1e4, partial_rotary_factor=0.5))
    return {
        "phi-published": first,
        "phi-saved": saved(
            change("layer_norm_eps", to=0.5), change("rope_parameters", "partial_rotary_factor", to=1.0), qk_layernorm=True,
            **rope(1e4, partial_rotary_factor=0.5)),
    }


def falcon():
    def variant(base, style, *matters, tied=True, **more):
        values = {**base, **rope(1e4), "tie_word_embeddings": tied, **more}
        values["num_kv_heads"] = values.pop("num_key_value_heads")
        values["ffn_hidden_size"] = values.pop("intermediate_size")
        make = lambda: transformers.FalconForCausalLM(transformers.FalconConfig(**values))
        norms = NORMS + ((r"(layernorm|ln_attn|ln_mlp)\.weight$", lambda normal: 0.9 + 0.15 * normal),)
        rules = norms + ((r"word_embeddings\.weight$", lambda normal: (0.12 if tied else 0.5) * normal),)
        return Variant(make, *([style] if style else []), rules=rules, matters=list(matters))

    return {
        "falcon-published": variant(
            PUBLISHED, four, change("activation", to="relu"), change("rope_theta", to=100.0), new_decoder_architecture=True),
        "falcon-saved": variant(
            SAVED, None, change("layer_norm_epsilon", to=0.5), bias=True, multi_query=True, tied=False),
        "falcon-sequential": variant(
            SAVED, None, change("layer_norm_epsilon", to=0.5), multi_query=False, parallel_attn=False, bias=True,
            num_key_value_heads=4),
    }


def opt():
    def variant(base, style, *matters, **more):
        values = {**base, "word_embed_proj_dim": base["hidden_size"], **more}
        values.pop("num_key_value_heads")
        values["ffn_dim"] = values.pop("intermediate_size")
        make = lambda: transformers.OPTForCausalLM(transformers.OPTConfig(**values))
        rules = NORMS + ((r"embed_positions\.weight$", lambda normal: 0.3 * normal),)
        return Variant(make, *([style] if style else []), rules=rules, matters=list(matters))

    return {
        "opt-published": variant(PUBLISHED, four, change("activation_function", to="gelu"), tie_word_embeddings=True),
        "opt-saved": variant(
            SAVED, None, change("activation_function", to="silu"), enable_bias=False),
    }


VARIANTS = {**gpt_bigcode(), **gptj(), **phi(), **falcon(), **opt()}

if __name__ == "__main__":
    tiny.main(VARIANTS)
