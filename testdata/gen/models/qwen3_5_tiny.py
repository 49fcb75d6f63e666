"""Writes the tiny checkpoints testdata/models/qwen3_5-* and qwen3_5_moe-* (Qwen3-Next among them), with random
weights, and their goldens. qwen3_5_image.py writes those with pictures.
"""

import copy

import reference  # first: keeps transformers offline

import numpy as np
from transformers import (Qwen3_5Config, Qwen3_5ForCausalLM, Qwen3_5ForConditionalGeneration, Qwen3_5MoeConfig,
                          Qwen3_5MoeForCausalLM, Qwen3_5MoeForConditionalGeneration, Qwen3_5MoeTextConfig, Qwen3_5TextConfig,
                          Qwen3NextConfig, Qwen3NextForCausalLM)

import checkpoint
import qwen3_5_mtp
import tiny
from tiny import AROUND_ZERO, VOCAB, Variant, change

BASE = dict(
    vocab_size=VOCAB, hidden_size=64, intermediate_size=64, num_hidden_layers=4, num_attention_heads=2,
    num_key_value_heads=1, head_dim=32, max_position_embeddings=128, linear_num_key_heads=2, linear_num_value_heads=4,
    linear_key_head_dim=16, linear_value_head_dim=16, eos_token_id=VOCAB - 1,
    rope_parameters={"rope_type": "default", "rope_theta": 100000.0, "partial_rotary_factor": 0.25},
)
VISION = dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, patch_size=4, out_hidden_size=64,
              num_position_embeddings=16)
RULES = (
    (r"\.A_log$", lambda normal: np.clip(0.25 + 0.8 * normal, -1, 1.5)),
    (r"\.dt_bias$", lambda normal: np.clip(0.7 * normal, -1, 1)),
    (r"linear_attn\.norm\.weight$", lambda normal: 0.9 + 0.15 * normal),
    # Norms that scale by 1 + w.
    (r"(^model\.|language_model\.|mtp\.)(layers\.\d+\..*)?\w*norm\w*\.weight$", AROUND_ZERO),
)
# A delta rule amplifies small differences; a larger residual stream keeps the logits steady.
LOUD = ((r"embed_tokens\.weight$", lambda normal: normal),)
# Tensors that published files store in float32.
EXACT = (r"\.A_log$",)


def with_mtp(model):
    model.mtp = qwen3_5_mtp.Head(qwen3_5_mtp.text_of(model))
    return model


def published(config, tensors):
    """Returns config.json as published: rope parameters in the new style, and further keys."""
    config = copy.deepcopy(config)
    text = config["text_config"]
    text.pop("layer_types")
    text["rope_parameters"].update(mrope_interleaved=True, mrope_section=[2, 1, 1])
    text.update(full_attention_interval=4, mtp_num_hidden_layers=1, mtp_use_dedicated_embeddings=False, attn_output_gate=True,
                mamba_ssm_dtype="float32")
    config["vision_config"].update(deepstack_visual_indexes=[])
    return config, checkpoint.fuse(tensors)


def dense(style=None, matters=(), **more):
    return Variant(lambda: Qwen3_5ForCausalLM(Qwen3_5TextConfig(**{**BASE, **more})), *([style] if style else []),
                   rules=RULES if more.get("tie_word_embeddings") else LOUD + RULES, matters=list(matters))


def rope(key, to):
    return change("rope_parameters", key, to=to)


DENSE = {
    "qwen3_5-default": dense(None, [rope("rope_theta", 100.0), rope("partial_rotary_factor", 0.5),
                                    change("rms_norm_eps", to=0.1)]),
    # As many value heads as key heads, full layers in the middle and at the end, a wider convolution.
    "qwen3_5-equal-heads": dense(None, [rope("partial_rotary_factor", 0.25)], linear_num_key_heads=3,
                                 linear_num_value_heads=3, linear_conv_kernel_dim=3, tie_word_embeddings=True,
                                 layer_types=["linear_attention", "full_attention"] * 2, attention_bias=True,
                                 rope_parameters={**BASE["rope_parameters"], "partial_rotary_factor": 0.5}),
    # Four value heads for each key head, of another width.
    "qwen3_5-four-heads": dense(None, [], linear_num_key_heads=1, linear_key_head_dim=24, num_hidden_layers=5,
                                tie_word_embeddings=True),
    "qwen3_5-published": Variant(
        lambda: with_mtp(Qwen3_5ForConditionalGeneration(Qwen3_5Config(
            text_config=BASE, vision_config=VISION))),
        published, rules=LOUD + RULES, exact=EXACT, limit=460 * 1024,
        matters=[change("text_config", "rope_parameters", "rope_theta", to=100.0)]),
    "qwen3_5-published-tied": Variant(
        lambda: with_mtp(Qwen3_5ForConditionalGeneration(Qwen3_5Config(
            text_config={**BASE, "tie_word_embeddings": True}, vision_config=VISION, tie_word_embeddings=True))),
        published, rules=RULES, exact=EXACT),
}

MOE = {**{k: v for k, v in BASE.items() if k != "intermediate_size"}, "num_experts": 6, "num_experts_per_tok": 2,
       "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32}
NEXT = {**MOE, "norm_topk_prob": True, "intermediate_size": 64, "decoder_sparse_step": 1, "mlp_only_layers": [1]}


def moe(style=None, matters=(), **more):
    return Variant(lambda: Qwen3_5MoeForCausalLM(Qwen3_5MoeTextConfig(**{**MOE, **more})), *([style] if style else []),
                   rules=RULES if more.get("tie_word_embeddings") else LOUD + RULES, matters=list(matters), limit=640 * 1024)


def published_next(config, tensors):
    config = checkpoint.four(config)
    config["partial_rotary_factor"] = 0.25
    config.pop("layer_types")
    config["full_attention_interval"] = 4
    return config, checkpoint.apart(tensors)


def following(style=None, matters=(), **more):
    head = with_mtp if style else lambda model: model
    return Variant(lambda: head(Qwen3NextForCausalLM(Qwen3NextConfig(**{**NEXT, **more}))), *([style] if style else []),
                   rules=RULES if more.get("tie_word_embeddings") else LOUD + RULES, matters=list(matters), limit=640 * 1024)


EXPERTS = {
    "qwen3_5_moe-default": moe(None, [change("num_experts_per_tok", to=3)]),
    "qwen3_5_moe-published": Variant(
        lambda: with_mtp(Qwen3_5MoeForConditionalGeneration(Qwen3_5MoeConfig(
            text_config={**MOE, "num_experts": 4}, vision_config=VISION))),
        published, rules=LOUD + RULES, exact=EXACT, limit=640 * 1024, firm=True),
    # mlx-lm adds 1 to the norms; for these weights the sum is exact.
    "qwen3_5_moe-mlx": Variant(
        lambda: with_mtp(Qwen3_5MoeForConditionalGeneration(Qwen3_5MoeConfig(
            text_config={**MOE, "num_experts": 4, "tie_word_embeddings": True}, vision_config=VISION,
            tie_word_embeddings=True))),
        lambda c, t: checkpoint.to_mlx(*published(c, t)), exact=EXACT, limit=640 * 1024,
        rules=((checkpoint.SHIFTED, lambda normal: np.round(128 * (0.9 + 0.15 * normal)) / 128 - 1), *RULES)),
    "qwen3_5_moe-next": following(None, [change("norm_topk_prob", to=False), rope("rope_theta", 100.0)],
                                  tie_word_embeddings=True),
    "qwen3_5_moe-next-published": following(published_next, [change("partial_rotary_factor", to=0.5)],
                                            tie_word_embeddings=True, norm_topk_prob=False, num_experts=5),
    # As llama.cpp runs it: all layers have experts, whose weights sum to 1.
    "qwen3_5_moe-next-sparse": following(published_next, [], mlp_only_layers=[], num_experts=4),
}

if __name__ == "__main__":
    tiny.main({**DENSE, **EXPERTS})
