"""Writes the tiny checkpoints of Qwen 4 (experimental), with random weights, and their goldens.

    qwen4_exp_tiny.py [NAME...]
"""

import copy

import reference  # first: keeps transformers offline

import numpy as np
from transformers import Qwen4ExpConfig, Qwen4ExpForCausalLM, Qwen4ExpForConditionalGeneration, Qwen4ExpTextConfig

import checkpoint
import dense
import tiny
from tiny import AROUND_ZERO, Variant, change

RULES = (
    (r"\.A_log$", lambda normal: np.clip(0.25 + 0.8 * normal, -1, 1.5)),
    (r"\.dt_bias$", lambda normal: np.clip(0.7 * normal, -1, 1)),
    (r"linear_attn\.norm\.weight$", lambda normal: 0.9 + 0.15 * normal),
    # All other norms scale by 1 + w. A larger last one spreads the logits.
    (r"hyper_connection_mixer\.hc_norm\.weight$", lambda normal: 2 + 0.15 * normal),
    (r"norm\w*\.weight$", AROUND_ZERO),
    (r"ngram_embedding", lambda normal: normal),
    (r"conv1d\.weight$", lambda normal: 0.5 * normal),
    (r"block_inject_weight", lambda normal: 0.15 * normal),
)
LOUD = ((r"embed_tokens\.weight$", lambda normal: normal),)
EXACT = (r"\.A_log$",)
# The budget of positions is smaller than the text. With few index heads several blocks have a score of 0, of which
# transformers chooses any. The token at which n-grams end is in the text more than once.
SIZES = dict(
    vocab_size=dense.VOCAB, max_position_embeddings=128, bos_token_id=None, pad_token_id=None, num_attention_heads=4,
    num_key_value_heads=2, indexer_n_heads=16, indexer_kv_heads=1, make_ngram_vocab_size_divisible_by=8, num_experts=4,
    num_experts_per_tok=2,
)
L, A = "linear_attention", "indexed_attention"
VISION = dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, patch_size=4, out_hidden_size=64,
              num_position_embeddings=16)


def rope(theta, part):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": theta, "partial_rotary_factor": part}}


def published(config, tensors):
    """Stores a checkpoint with the publisher's word for layers, fused experts, and further keys."""
    config = copy.deepcopy(config)
    text = config["text_config"]
    text["layer_types"] = [kind.replace("indexed", "full") for kind in text["layer_types"]]
    text["rope_parameters"].update(mrope_interleaved=True, mrope_section=[2, 1, 1])
    text.update(mtp_num_hidden_layers=1, attn_output_gate=True)
    return config, checkpoint.fuse(tensors)


PUBLISHED = dict(
    SIZES, hidden_size=64, num_hidden_layers=2, head_dim=16, layer_types=[L, A], linear_num_key_heads=2,
    linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16, moe_intermediate_size=64,
    shared_expert_intermediate_size=64, hc_count=2, hc_lowrank=64, ple_layer_ids=[1], ple_embed_dim=128, ngram_size=3, heads_per_ngram=1,
    ngram_vocab_size_base=40, split_ngram_parts=4, indexer_head_dim=16, indexer_budget=16, indexer_compress_ratio=4,
    eos_token_id=63, **rope(1e4, 0.5))

VARIANTS = {
    "qwen4_exp-published": Variant(
        lambda: Qwen4ExpForConditionalGeneration(Qwen4ExpConfig(text_config=PUBLISHED, vision_config=VISION)), published,
        rules=LOUD + RULES, exact=EXACT, limit=640 * 1024,
        matters=[change("text_config", key, to=to) for key, to in dict(
            eos_token_id=12, indexer_budget=8, num_experts_per_tok=1, output_gate_type="sigmoid", rms_norm_eps=0.3).items()]),
    "qwen4_exp-saved": Variant(
        lambda: Qwen4ExpForCausalLM(Qwen4ExpTextConfig(**dict(
            SIZES, hidden_size=32, num_hidden_layers=4, head_dim=8, layer_types=[A, L, A, L], linear_num_key_heads=1,
            linear_num_value_heads=3, linear_key_head_dim=8, linear_value_head_dim=12, linear_conv_kernel_dim=3,
            moe_intermediate_size=16, shared_expert_intermediate_size=64, norm_topk_prob=False, hc_count=3, hc_lowrank=20,
            ple_layer_ids=[2, 4], ple_embed_dim=48, heads_per_ngram=2, ngram_size=4, ple_conv_kernel_size=3, ngram_vocab_size_base=20,
            split_ngram_parts=3, indexer_head_dim=12, indexer_budget=6, indexer_compress_ratio=3, output_gate_type="sigmoid",
            eos_token_id=[122, 5], attention_bias=True, tie_word_embeddings=True, **rope(5e4, 1.0)))),
        rules=RULES, exact=EXACT,
        matters=[*(change(key, to=to) for key, to in dict(
            eos_token_id=[69], indexer_budget=9, norm_topk_prob=True, output_gate_type="silu", rms_norm_eps=0.3).items()),
                 change("rope_parameters", "partial_rotary_factor", to=0.5)]),
}

if __name__ == "__main__":
    tiny.main(VARIANTS)
