"""The tables of Qwen 4 (experimental), for tables.py."""

import re

import transformers as tf

SIZES = dict(
    vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
    max_position_embeddings=128, layer_types=["linear_attention", "indexed_attention"], linear_num_key_heads=2,
    linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=8, moe_intermediate_size=16,
    shared_expert_intermediate_size=24, num_experts=4, num_experts_per_tok=2, hc_count=3, hc_lowrank=12, ple_layer_ids=[1],
    ple_embed_dim=16, heads_per_ngram=2, ngram_vocab_size_base=30, make_ngram_vocab_size_divisible_by=4,
    split_ngram_parts=5, indexer_n_heads=2, indexer_kv_heads=1, indexer_head_dim=8, indexer_budget=8,
    indexer_compress_ratio=4, bos_token_id=None, pad_token_id=None, eos_token_id=2,
    rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5})
VISION = dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, patch_size=4, out_hidden_size=32,
              num_position_embeddings=16)


def tables(saved, write, fuse):
    """Publishers call attention with an indexer full attention. The second table has the n-grams in one piece, fused experts
    and a head for further tokens."""
    config, tensors = saved(tf.Qwen4ExpForConditionalGeneration(tf.Qwen4ExpConfig(text_config=SIZES, vision_config=VISION)))
    write("qwen4_exp", config, tensors)
    config["text_config"]["layer_types"] = ["linear_attention", "full_attention"]
    out, rows = {}, {}
    for name, spec in fuse(tensors).items():
        if m := re.fullmatch(r"(.*\.ngram_embedding)\.shard_\d+(\.weight)", name):
            name = m[1] + m[2]
            rows[name] = rows.get(name, 0) + spec[1]
            spec = [spec[0], rows[name], spec[2]]
        out[name] = spec
    out["mtp.fc.weight"] = ["BF16", 32, 64]
    write("qwen4_exp-published", config, out)
