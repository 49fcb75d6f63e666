"""Writes the tiny checkpoints testdata/models/gemma4-*, one or two of each published shape, with random weights,
and their goldens. A name that ends in -saved is as transformers 5 saves it; the others have the keys and tensors of
published files.
"""

import copy

import reference  # first: keeps transformers offline

from transformers import (Gemma4Config, Gemma4ForCausalLM, Gemma4ForConditionalGeneration, Gemma4TextConfig,
                          Gemma4UnifiedConfig, Gemma4UnifiedForConditionalGeneration)

import checkpoint
import tiny
from tiny import VOCAB, Variant, change

SLIDING, FULL = "sliding_attention", "full_attention"
LIMIT = 520 * 1024
BASE = dict(
    vocab_size=VOCAB, hidden_size=64, intermediate_size=64, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
    global_head_dim=32, max_position_embeddings=128, sliding_window=8, final_logit_softcapping=4.0,
    hidden_size_per_layer_input=0, vocab_size_per_layer_input=VOCAB, bos_token_id=2, eos_token_id=1, pad_token_id=0,
)
# The tokens of a multimodal configuration, which the texts do not have.
SPECIAL = dict(boi_token_id=1001, eoi_token_id=1002, image_token_id=1003, video_token_id=1004, boa_token_id=1005,
               eoa_token_index=1006, audio_token_id=1007)
VISION = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
              head_dim=8, position_embedding_size=16, patch_size=4)
RULES = (
    (r"(^|\.)language_model\.norm\.weight$|^model\.norm\.weight$", lambda normal: 2.2 + 0.2 * normal),
    # Attention scores are not divided by the root of the head's width.
    (r"[qk]_norm\.weight$", lambda normal: 0.6 + 0.1 * normal),
    (r"embed_tokens\.weight$", lambda normal: 0.05 * normal),
    (r"embed_tokens_per_layer\.weight$", lambda normal: 0.35 * normal),
    (r"\.layer_scalar$", lambda normal: 0.8 + 0.15 * normal),
    (r"_layernorm_[12]\.weight$", lambda normal: 0.9 + 0.15 * normal),
    # The router divides its input by the root of its width.
    (r"router\.proj\.weight$", lambda normal: 1.2 * normal),
    (r"router\.(scale|per_expert_scale)$", lambda normal: 1 + 0.2 * normal),
)

SHAPES = {
    "e2b": dict(layer_types=[SLIDING, SLIDING, FULL, SLIDING, FULL], hidden_size_per_layer_input=8, num_kv_shared_layers=2,
                use_double_wide_mlp=True, num_key_value_heads=1),
    "e4b": dict(layer_types=[SLIDING, FULL] * 2, hidden_size_per_layer_input=32, num_kv_shared_layers=2),
    "12b": dict(layer_types=[SLIDING, SLIDING, FULL] * 2, attention_k_eq_v=True, num_global_key_value_heads=1),
    "31b": dict(layer_types=[SLIDING] * 3 + [FULL], attention_k_eq_v=True, num_attention_heads=8, num_key_value_heads=4,
                num_global_key_value_heads=2, use_bidirectional_attention="vision"),
    "26b-a4b": dict(layer_types=[SLIDING, SLIDING, FULL], attention_k_eq_v=True, num_global_key_value_heads=1,
                    enable_moe_block=True, num_experts=6, top_k_experts=2, moe_intermediate_size=32),
}


def shape(name, **more):
    text = {**BASE, **SHAPES[name], **more}
    return {**text, "num_hidden_layers": len(text["layer_types"])}


def global_keys(text):
    """Writes per_layer_config as the two keys of published Gemma 4 files."""
    text = copy.deepcopy(text)
    some = next(iter(text.pop("per_layer_config").values()))
    text["global_head_dim"] = some.get("head_dim", text["head_dim"])
    text["num_global_key_value_heads"] = some.get("num_key_value_heads")
    return dict(sorted(text.items()))


def published(config, tensors):
    """Adds the unused K and V projections that published files have for layers with a shared KV cache."""
    config, tensors = copy.deepcopy(config), dict(tensors)
    text = config["text_config"] = global_keys(config["text_config"])
    first = text["num_hidden_layers"] - text["num_kv_shared_layers"]
    for i in range(first, text["num_hidden_layers"]):
        donor = max(j for j in range(first) if text["layer_types"][j] == text["layer_types"][i])
        for piece in ("k_proj.weight", "v_proj.weight", "k_norm.weight"):
            name = f"model.language_model.layers.{{}}.self_attn.{piece}"
            tensors[name.format(i)] = -tensors[name.format(donor)]
    return config, tensors


def nested(name, style=None, matters=(), vision=None, **more):
    kind, outer = Gemma4ForConditionalGeneration, Gemma4Config
    towers = dict(vision_config=vision, audio_config=None)
    if name == "12b":
        kind, outer = Gemma4UnifiedForConditionalGeneration, Gemma4UnifiedConfig
        towers = dict(vision_config=dict(mm_embed_dim=16, mm_posemb_size=8, output_proj_dims=16, patch_size=2),
                      audio_config=dict(audio_embed_dim=8))
    return Variant(lambda: kind(outer(text_config=shape(name, **more), **towers, **SPECIAL)), *([style] if style else []),
                   rules=RULES, matters=list(matters), limit=LIMIT)


def text(*path, to):
    return change("text_config", *path, to=to)


ROPES = [text("rope_parameters", FULL, "rope_theta", to=100.0), text("rope_parameters", FULL, "partial_rotary_factor", to=1.0),
         text("rope_parameters", FULL, "rope_type", to="default"), text("rope_parameters", SLIDING, "rope_theta", to=100.0)]
# Texts longer than the trained context.
SCALED = {FULL: {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 10000.0, "factor": 4.0},
          SLIDING: {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}}
VARIANTS = {
    "gemma4-e2b": nested("e2b", published, [text("sliding_window", to=12), text("final_logit_softcapping", to=None), *ROPES]),
    "gemma4-e2b-saved": Variant(lambda: Gemma4ForCausalLM(Gemma4TextConfig(**shape("e2b"))), rules=RULES, limit=LIMIT,
                                matters=[change("sliding_window", to=12)]),
    "gemma4-e4b": nested("e4b", published, [text("sliding_window", to=12)]),
    "gemma4-12b": nested("12b", published, [text("sliding_window", to=12), *ROPES]),
    "gemma4-12b-saved": nested("12b", None, [text("rope_parameters", FULL, "factor", to=1.0),
                                             text("rope_parameters", SLIDING, "factor", to=1.0)], rope_parameters=SCALED),
    "gemma4-31b": nested("31b", published, [text("sliding_window", to=12)], vision=VISION),
    "gemma4-26b-a4b": nested("26b-a4b", published, [text("top_k_experts", to=3)]),
    "gemma4-26b-a4b-mlx": nested("26b-a4b", lambda c, t: checkpoint.to_mlx(*published(c, t)), vision=VISION),
    "gemma4-26b-a4b-saved": nested("26b-a4b", None, [text("top_k_experts", to=3)], attention_k_eq_v=False,
                                   num_global_key_value_heads=None),
}

if __name__ == "__main__":
    tiny.main(VARIANTS)
