"""Writes the tiny checkpoints testdata/models/qwen3-* and qwen3_moe-*, with random weights, and their goldens.

    qwen3_tiny.py [NAME...]

long-qwen3-* have texts longer than the model's context. There the result depends on the steps: logits are of the text
in one step, steps of one token at a time.
"""

import reference  # first: keeps transformers offline

from transformers import (Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM, Qwen3VLMoeConfig,
                          Qwen3VLMoeForConditionalGeneration)

import checkpoint
import tiny
from tiny import VOCAB, Variant, change

BASE = dict(
    vocab_size=VOCAB, hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4,
    num_key_value_heads=2, head_dim=16, max_position_embeddings=128, bos_token_id=None, eos_token_id=VOCAB - 1,
    rope_parameters={"rope_type": "default", "rope_theta": 1000000.0},
)
RULES = ((r"[qk]_norm\.weight$", lambda normal: 1.2 + 0.2 * normal),)


def rope(**params):
    return {"rope_parameters": {"rope_theta": 10000.0, **params}}


def plain(config):
    """Removes the scaling of the rope from config.json."""
    if config.get("rope_parameters"):
        return dict(config, rope_parameters={"rope_type": "default", "rope_theta": config["rope_parameters"]["rope_theta"]})
    return dict(config, rope_scaling=None)


def published(config, tensors):
    return checkpoint.four(config), tensors


def published_window(config, tensors):
    """Removes layer_types, which published files lack."""
    config = checkpoint.four(config)
    del config["layer_types"]
    return config, tensors


def dense(style=None, matters=(), **more):
    return Variant(lambda: Qwen3ForCausalLM(Qwen3Config(**{**BASE, **more})), *([style] if style else []), rules=RULES,
                   matters=list(matters))


YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32)
LONG = dict(rope_type="longrope", original_max_position_embeddings=64, factor=4.0,
            short_factor=[1.0, 1.2, 1.5, 1.9, 2.2, 2.6, 3.0, 3.5], long_factor=[1.0, 1.5, 2.5, 4.0, 6.0, 8.0, 12.0, 16.0])

DENSE = {
    "qwen3-default": dense(published, [change("rope_theta", to=10000.0), change("rms_norm_eps", to=0.1)]),
    "qwen3-saved": dense(None, [change("rope_parameters", "rope_theta", to=10000.0)], num_hidden_layers=4,
                         tie_word_embeddings=True),
    "qwen3-head-dim": dense(published, head_dim=24, num_key_value_heads=1, tie_word_embeddings=True),
    "qwen3-bias": dense(published, [change("attention_bias", to=False)], attention_bias=True),
    "qwen3-window": dense(published_window, [change("use_sliding_window", to=False), change("sliding_window", to=12),
                                             change("max_window_layers", to=2)],
                          use_sliding_window=True, sliding_window=8, max_window_layers=1, num_hidden_layers=4),
    "qwen3-window-types": dense(None, [change("sliding_window", to=12),
                                       change("layer_types", to=None), change("layer_types", to=["full_attention"] * 4)],
                                use_sliding_window=True, sliding_window=9, num_hidden_layers=4, max_window_layers=2,
                                layer_types=["sliding_attention", "full_attention", "sliding_attention", "full_attention"]),
    "qwen3-yarn": dense(published, [plain, change("rope_scaling", "attention_factor", to=1.0)], **rope(**YARN)),
    "qwen3-yarn-saved": dense(None, [plain, change("rope_parameters", "factor", to=3.0)], **rope(**YARN)),
    "qwen3-longrope": dense(published, [plain, change("rope_scaling", "factor", to=8.0),
                                        change("rope_scaling", "short_factor", to=[1.0] * 8)], **rope(**LONG)),
}

# The context is shorter than the text.
BEYOND = {
    "long-qwen3-dynamic": dense(published, [plain, change("max_position_embeddings", to=128),
                                            change("rope_scaling", "factor", to=2.0)],
                                **rope(rope_type="dynamic", factor=4.0), max_position_embeddings=32),
    "long-qwen3-longrope": dense(published, [plain, change("rope_scaling", "original_max_position_embeddings", to=64)],
                                 **rope(**{**LONG, "original_max_position_embeddings": 32})),
}

MOE = {**BASE, "intermediate_size": 64, "num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 32,
       "norm_topk_prob": True, "num_hidden_layers": 2}


def moe(style=None, matters=(), **more):
    return Variant(lambda: Qwen3MoeForCausalLM(Qwen3MoeConfig(**{**MOE, **more})), *([style] if style else []), rules=RULES,
                   matters=list(matters))


def vl_moe():
    """Returns a multimodal model, of which the text model is imported."""
    text = {**MOE, "num_experts": 4, "moe_intermediate_size": 24, "rope_parameters": {**BASE["rope_parameters"], "mrope_section": [3, 3, 2]}}
    del text["norm_topk_prob"]  # which has no influence
    tower = dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, out_hidden_size=64, patch_size=4,
                 num_position_embeddings=16, deepstack_visual_indexes=[0])
    return Qwen3VLMoeForConditionalGeneration(Qwen3VLMoeConfig(text_config=text, vision_config=tower, tie_word_embeddings=False))


def vl_published(config, tensors):
    """Transposes the experts of each layer, as published checkpoints of Qwen3-VL have them."""
    text = config["text_config"] = checkpoint.four(config["text_config"])
    text["rope_scaling"] = {"mrope_interleaved": True, "mrope_section": [3, 3, 2], "rope_type": "default"}
    for name, tensor in tensors.items():
        if ".experts." in name:
            tensors[name] = tensor.transpose(1, 2).contiguous()
    return config, tensors


EXPERTS = {
    "qwen3_moe-default": moe(None, [change("norm_topk_prob", to=False), change("num_experts_per_tok", to=2)]),
    "qwen3_moe-published": moe(lambda c, t: (checkpoint.four(c), checkpoint.apart(t)),
                               [change("norm_topk_prob", to=True), change("rope_theta", to=10000.0)], norm_topk_prob=False,
                               num_experts=6, num_experts_per_tok=2, moe_intermediate_size=64, tie_word_embeddings=True),
    "qwen3_moe-fused": moe(lambda c, t: (checkpoint.four(c), checkpoint.fuse(t)), []),
    "qwen3_moe-window": moe(None, [change("sliding_window", to=12), change("use_sliding_window", to=False)],
                            use_sliding_window=True, sliding_window=8, tie_word_embeddings=True),
    "qwen3_moe-stacked": moe(lambda c, t: checkpoint.to_mlx(checkpoint.four(c), t), [], tie_word_embeddings=True),
    "qwen3_moe-dense-layers": moe(None, [change("attention_bias", to=False)], mlp_only_layers=[1], decoder_sparse_step=2,
                                  num_hidden_layers=4, num_experts=4, num_experts_per_tok=2, attention_bias=True, tie_word_embeddings=True),
    "qwen3_moe-vl": Variant(vl_moe, vl_published, rules=RULES, matters=[
        change("text_config", "num_experts_per_tok", to=2), change("text_config", "rope_theta", to=10000.0)]),
}

if __name__ == "__main__":
    tiny.main({**DENSE, **BEYOND, **EXPERTS})
