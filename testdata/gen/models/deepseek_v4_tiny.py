"""Writes the tiny checkpoints of DeepSeek V4, with random weights, and their goldens.

    deepseek_v4_tiny.py [NAME...]
"""

import reference  # first: keeps transformers offline

import numpy as np
import torch
from transformers import DeepseekV4Config, DeepseekV4ForCausalLM

import checkpoint
import dense
import tiny
from tiny import Variant, change

# What starts at zero or one: random values show that each is used.
RULES = (
    (r"correction_bias$", lambda normal: 0.2 * normal),
    (r"sinks$", lambda normal: normal),
    (r"position_bias$", lambda normal: 0.7 * normal),
    (r"_hc\.scale$|hc_scale$", lambda normal: 1 + 0.3 * normal),
    (r"norm\.weight$", lambda normal: 0.9 + 0.15 * normal),
)
# As transformers names and as it saves them.
EXACT = (r"_hc\.|hc_(attn|ffn|head)", r"sinks?$", r"position_bias$|\.ape$", r"correction_bias$|gate\.bias$")
# The window, the budget of entries and both rates are smaller than the text. With few index heads several entries have a
# score of 0, of which transformers chooses any. The limit of the gates is often reached.
SIZES = dict(
    vocab_size=dense.VOCAB, max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=None,
    num_attention_heads=4, num_key_value_heads=1, q_lora_rank=32, n_routed_experts=4, num_experts_per_tok=2,
    moe_intermediate_size=32, sliding_window=9, index_n_heads=16, index_head_dim=16, index_topk=4, swiglu_limit=0.8,
    compress_rates={"compressed_sparse_attention": 4, "heavily_compressed_attention": 8}, hc_sinkhorn_iters=4,
)
S, C, H = "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"
YARN = dict(factor=4.0, original_max_position_embeddings=32, beta_fast=8, beta_slow=1)


def variant(matters, style=lambda *stored: stored, **more):
    def make():
        model = DeepseekV4ForCausalLM(DeepseekV4Config(**{**SIZES, **more}))
        rng = np.random.RandomState(4)
        for name, table in model.named_buffers():
            if name.endswith("tid2eid"):
                rows = [rng.permutation(SIZES["n_routed_experts"])[: table.shape[1]] for _ in range(table.shape[0])]
                table.copy_(torch.tensor(np.array(rows)))
        return model

    v = Variant(make, style, rules=RULES, matters=matters)
    v.exact, v.limit = EXACT, 480 * 1024
    return v


def published(config, tensors):
    """Stores a checkpoint with the publisher's names and keys."""
    ratios = {S: 0, C: 4, H: 128}
    rates, types, layers = config.pop("compress_rates"), config.pop("layer_types"), config.pop("mlp_layer_types")
    config.update(
        compress_ratios=[*(ratios[t] for t in types), 0], compress_rate_hca=rates[H], num_hash_layers=layers.count("hash_moe"),
        topk_method="noaux_tc", torch_dtype=config.pop("dtype"))
    scaling = config.pop("rope_parameters")["compress"]
    config["rope_scaling"] = {"type": scaling["rope_type"], **YARN}
    config.pop("partial_rotary_factor")
    return dict(sorted(config.items())), checkpoint.rename(
        tensors, (r"^model\.embed_tokens\.", "embed."), (r"^model\.hc_head\.hc_", "hc_head_"),
        (r"^model\.(.*\.attn)\.norm\.", r"\1.kv_norm."), (r"^model\.", ""))


def setting(**values):
    return [change(k, to=v) for k, v in values.items()]


VARIANTS = {
    "deepseek_v4-published": variant(
        setting(index_topk=2, swiglu_limit=5.0, hc_sinkhorn_iters=1, sliding_window=12, routed_scaling_factor=1.0,
                compress_rope_theta=100.0, rope_theta=100.0), published,
        hidden_size=64, num_hidden_layers=3, head_dim=32, partial_rotary_factor=0.25, o_groups=2, o_lora_rank=32, hc_mult=2,
        layer_types=[S, C, H], mlp_layer_types=["hash_moe", "moe", "moe"], rope_parameters=dict(YARN, rope_type="yarn")),
    "deepseek_v4-saved": variant(
        [*setting(index_topk=2, swiglu_limit=5.0, hc_eps=0.1, sliding_window=12),
         change("rope_parameters", "compress", "factor", to=1.0), change("rope_parameters", "main", "rope_theta", to=100.0)],
        hidden_size=32, num_hidden_layers=3, head_dim=16, partial_rotary_factor=0.5, o_groups=4, o_lora_rank=16, hc_mult=3,
        q_lora_rank=16, moe_intermediate_size=16, layer_types=[H, S, C], mlp_layer_types=["moe", "hash_moe", "moe"],
        compress_rates={C: 3, H: 7}, index_topk=5, routed_scaling_factor=2.0, rope_parameters=dict(YARN, rope_type="yarn")),
}

if __name__ == "__main__":
    tiny.main(VARIANTS)
