"""Writes the tiny checkpoints of GPT-2, GPT-NeoX and Phi-4 multimodal, with random weights, and their goldens.

    gpt_tiny.py [NAME...]
"""

import reference  # first: keeps transformers offline

import tiny
import checkpoint
from dense import PUBLISHED, SAVED, family, four, rope
from tiny import Variant, change

import transformers

# LayerNorms whose names do not end like other norms'.
NORMS = ((r"(ln_\w+|layer_norm)\.weight$", lambda normal: 0.9 + 0.15 * normal),)


def gpt2_keys(base, **more):
    """Returns sizes under the names that GPT-2 has for them."""
    names = dict(hidden_size="n_embd", num_hidden_layers="n_layer", num_attention_heads="n_head",
                 max_position_embeddings="n_positions")
    drop = ("intermediate_size", "num_key_value_heads", "tie_word_embeddings")
    return {**{names.get(k, k): v for k, v in base.items() if k not in drop}, "tie_word_embeddings": True, **more}


def gpt2():
    # Conv1D stores [in, out], and embeddings have other names.
    rules = NORMS + ((r"wte\.weight$", lambda normal: 0.12 * normal), (r"wpe\.weight$", lambda normal: 0.3 * normal))

    def first(config, tensors):
        """The first published files: no prefix, n_ctx."""
        tensors = {n.removeprefix("transformer."): t for n, t in tensors.items()}
        config = four(config, tensors)[0]
        config.pop("tie_word_embeddings", None)
        return dict(config, n_ctx=config["n_positions"]), tensors

    def variant(values, style, *matters):
        make = lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(**values))
        return Variant(make, *([style] if style else []), rules=rules, matters=list(matters))

    return {
        "gpt2-published": variant(
            gpt2_keys(PUBLISHED), first, change("layer_norm_epsilon", to=0.5), change("activation_function", to="relu")),
        "gpt2-saved": variant(
            gpt2_keys(SAVED, n_inner=64, scale_attn_by_inverse_layer_idx=True, activation_function="gelu",
                      tie_word_embeddings=False), None,
            change("scale_attn_by_inverse_layer_idx", to=False)),
        "gpt2-unscaled": variant(
            gpt2_keys(SAVED, scale_attn_weights=False), None, change("scale_attn_weights", to=True)),
    }


def gpt_neox():
    embedding = lambda size: NORMS + ((r"embed_in\.weight$", lambda normal: size * normal),)

    def first(config, tensors):
        config = four(config, tensors)[0]
        config["rotary_emb_base"] = int(config.pop("rope_theta"))
        config["rotary_pct"] = 0.5
        config.pop("rope_scaling")
        config.pop("num_key_value_heads", None)
        masks = {}
        for i in range(config["num_hidden_layers"]):
            some = next(iter(tensors.values()))
            masks[f"gpt_neox.layers.{i}.attention.masked_bias"] = some.new_full((), -1e9)
            masks[f"gpt_neox.layers.{i}.attention.rotary_emb.inv_freq"] = some.new_ones(4)
        return config, {**tensors, **masks}

    def variant(base, style, matters, **more):
        values = {**base, **more}
        values.pop("num_key_value_heads")
        make = lambda: transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**values))
        size = 0.12 if values["tie_word_embeddings"] else 0.5
        return Variant(make, *([style] if style else []), rules=embedding(size), matters=matters)

    return {
        "gpt_neox-published": variant(
            PUBLISHED, first, [change("rotary_pct", to=0.25), change("rotary_emb_base", to=100),
                               change("use_parallel_residual", to=False), change("hidden_act", to="relu")],
            **rope(10000.0, partial_rotary_factor=0.5)),
        "gpt_neox-saved": variant(
            SAVED, None, [change("use_parallel_residual", to=True), change("rope_parameters", "factor", to=4.0)],
            use_parallel_residual=False, attention_bias=False, hidden_act="gelu_fast", tie_word_embeddings=True,
            **rope(1000.0, "linear", factor=2.0, partial_rotary_factor=0.75)),
    }


def partial_beside(config, tensors):
    """Stores the part that rotates beside the rope, as transformers 4 did."""
    config = checkpoint.four(config)
    for rope in (config["rope_scaling"], config):
        if rope and "partial_rotary_factor" in rope:
            config["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
            break
    if not config["rope_scaling"] or config["rope_scaling"]["rope_type"] == "default":
        config["rope_scaling"] = None
    return config, tensors


def phi4_multimodal():
    towers = dict(
        vision_config=dict(hidden_size=8, intermediate_size=8, num_hidden_layers=2, num_attention_heads=2, image_size=28,
                           crop_size=28, image_token_id=126),
        audio_config=dict(hidden_size=8, intermediate_size=8, num_blocks=2, num_attention_heads=2, ext_pw_out_channel=8,
                          depthwise_separable_out_channel=8, nemo_conv_channels=4, bias_max_distance=8, input_size=16,
                          audio_token_id=127))
    published, saved = family("Phi4Multimodal", **towers)
    long = dict(short_factor=[1.0, 1.2, 1.5, 1.9, 2.2, 2.6], long_factor=[1.0, 1.5, 2.5, 4.0, 6.0, 8.0])
    return {
        "phi4_multimodal-published": published(
            change("rope_scaling", "short_factor", to=[1.0] * 6), change("sliding_window", to=12),
            style=partial_beside, original_max_position_embeddings=64, sliding_window=9,
            **rope(10000.0, "longrope", partial_rotary_factor=0.75, **long)),
        "phi4_multimodal-saved": saved(
            change("rope_parameters", "rope_theta", to=100.0), num_key_value_heads=4, tie_word_embeddings=True,
            sliding_window=None, **rope(10000.0)),
    }


VARIANTS = {**gpt2(), **gpt_neox(), **phi4_multimodal()}

if __name__ == "__main__":
    tiny.main(VARIANTS)
