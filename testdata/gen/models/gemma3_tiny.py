"""Writes the tiny checkpoints testdata/models/gemma3-*, with random weights, and their goldens."""

import copy

import reference  # first: keeps transformers offline

from transformers import Gemma3Config, Gemma3ForCausalLM, Gemma3ForConditionalGeneration, Gemma3TextConfig

import checkpoint
import tiny
from tiny import AROUND_ZERO, VOCAB, Variant, change

TYPES = ["sliding_attention", "sliding_attention", "full_attention"]
BASE = dict(
    vocab_size=VOCAB, hidden_size=64, intermediate_size=128, num_hidden_layers=4, num_attention_heads=4,
    num_key_value_heads=2, head_dim=16, max_position_embeddings=128, sliding_window=8, query_pre_attn_scalar=16,
    layer_types=TYPES + TYPES[:1], bos_token_id=2, eos_token_id=1, pad_token_id=0,
)
VISION = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=16, patch_size=8)
# Norms scale by 1 + w. The tied embedding is small so that texts do not repeat; a larger last norm makes up for it.
RULES = (
    (r"(^|\.)language_model\.norm\.weight$|^model\.norm\.weight$", lambda normal: 1.2 + 0.15 * normal),
    (r"layers\.\d+\..*norm\.weight$", AROUND_ZERO),
    (r"embed_tokens\.weight$", lambda normal: 0.05 * normal),
)


def both(full, sliding=None):
    return {"full_attention": full, "sliding_attention": sliding or {"rope_type": "default", "rope_theta": 10000.0}}


def old_keys(text):
    """Returns a configuration with the keys of transformers 4: two bases, one scaling, a pattern of layers."""
    text = copy.deepcopy(text)
    text["torch_dtype"] = text.pop("dtype", "bfloat16")
    ropes = text.pop("rope_parameters")
    full, sliding = ropes["full_attention"], ropes["sliding_attention"]
    text["rope_theta"], text["rope_local_base_freq"] = full.pop("rope_theta"), sliding.pop("rope_theta")
    text["rope_scaling"] = None if full["rope_type"] == "default" else full
    text["sliding_window_pattern"] = 1 + text.pop("layer_types").index("full_attention")
    del text["_sliding_window_pattern"]
    return dict(sorted(text.items()))


def published_text(config, tensors):
    return dict(old_keys(config), transformers_version="4.50.0.dev0"), tensors


def whole(config, tensors):
    """Returns a multimodal checkpoint as published: text_config lacks what equals the defaults of its class."""
    text = old_keys(config.pop("text_config"))
    defaults = old_keys(Gemma3TextConfig().to_dict())
    config["text_config"] = {k: v for k, v in text.items() if k == "model_type" or v != defaults.get(k)}
    config["torch_dtype"] = config.pop("dtype", "bfloat16")
    config["transformers_version"] = "4.50.0.dev0"
    # The names of transformers 4.50.
    return config, checkpoint.rename(
        tensors, (r"^model\.language_model\.", "language_model.model."),
        (r"^model\.vision_tower\.", "vision_tower.vision_model."), (r"^model\.multi_modal", "multi_modal"))


def text(style=None, matters=(), **more):
    return Variant(lambda: Gemma3ForCausalLM(Gemma3TextConfig(**{**BASE, **more})), *([style] if style else []), rules=RULES,
                   matters=list(matters))


def multimodal(style=None, matters=(), **more):
    def make():
        return Gemma3ForConditionalGeneration(Gemma3Config(
            text_config={**BASE, **more}, vision_config=VISION, mm_tokens_per_image=1, boi_token_index=VOCAB - 3,
            eoi_token_index=VOCAB - 2, image_token_index=VOCAB - 1, eos_token_id=[1, 106]))

    return Variant(make, *([style] if style else []), rules=RULES, matters=list(matters))


LINEAR = both({"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0})
VARIANTS = {
    "gemma3-text-saved": text(None, [
        change("sliding_window", to=12), change("layer_types", to=TYPES[2:] * 4),
        change("rope_parameters", "full_attention", "rope_theta", to=10000.0),
        change("rope_parameters", "sliding_attention", "rope_theta", to=100000.0)]),
    "gemma3-text-published": text(published_text, [
        change("sliding_window", to=12), change("sliding_window_pattern", to=2), change("rope_theta", to=10000.0),
        change("rope_local_base_freq", to=100000.0)]),
    # As the largest published model: its own attention scale, and a linear rope factor of 8.
    "gemma3-scaled": text(published_text, [
        change("query_pre_attn_scalar", to=24), change("rope_scaling", to=None)],
        query_pre_attn_scalar=10, head_dim=24, num_key_value_heads=1, rope_parameters=LINEAR),
    "gemma3-capped": text(None, [change("final_logit_softcapping", to=None)], final_logit_softcapping=3.0),
    "gemma3-saved": multimodal(None, [change("text_config", "query_pre_attn_scalar", to=32),
                                      change("text_config", "sliding_window", to=12)]),
    "gemma3-published": multimodal(whole, [
        change("text_config", "rope_scaling", to=None), change("text_config", "sliding_window_pattern", to=2),
        change("text_config", "query_pre_attn_scalar", to=None)], rope_parameters=LINEAR),
}

if __name__ == "__main__":
    tiny.main(VARIANTS)
