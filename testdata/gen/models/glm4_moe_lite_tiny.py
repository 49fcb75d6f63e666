"""Writes the tiny checkpoints testdata/models/glm4_moe_lite-*, with random weights, and their goldens."""

import reference  # first: keeps transformers offline

import torch
from transformers import Glm4MoeLiteConfig, Glm4MoeLiteForCausalLM

import checkpoint
import tiny
from tiny import VOCAB, Variant, change

BASE = dict(
    vocab_size=VOCAB, hidden_size=64, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4,
    num_key_value_heads=4, q_lora_rank=32, kv_lora_rank=32, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16,
    n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=32, max_position_embeddings=128, bos_token_id=0,
    eos_token_id=VOCAB - 1, rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
)
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 32, "mscale": 1.0,
        "mscale_all_dim": 0.7, "beta_fast": 2.0}
RULES = (
    (r"e_score_correction_bias$", lambda normal: 0.2 * normal),
    (r"_a_layernorm\.weight$", lambda normal: 0.9 + 0.15 * normal),
)
LIMIT = 480 * 1024


def published(config, tensors):
    """Returns a checkpoint as GLM-4.7-Flash is published.

    It has a count of dense layers, separate experts, a bias in float32, and after the last layer an MTP head: a
    projection that joins, a layer, an embedding and an output head.
    """
    layers = config["num_hidden_layers"]
    config = checkpoint.four(config)
    config.pop("mlp_layer_types")
    config["n_routed_experts"] = config.pop("num_experts", config.get("n_routed_experts"))
    config.update(first_k_dense_replace=1, num_nextn_predict_layers=1, topk_method="noaux_tc", partial_rotary_factor=1.0)
    tensors = checkpoint.apart(tensors)
    for name in list(tensors):
        if name.startswith(last := f"model.layers.{layers - 1}."):
            tensors[f"model.layers.{layers}." + name.removeprefix(last)] = -tensors[name]
    like = lambda *shape: torch.ones(shape, dtype=torch.bfloat16)
    for name, shape in (("eh_proj.weight", [64, 128]), ("enorm.weight", [64]), ("hnorm.weight", [64]),
                        ("shared_head.norm.weight", [64])):
        tensors[f"model.layers.{layers}.{name}"] = like(*shape)
    return config, tensors


def variant(style=None, matters=(), exact=(), firm=False, **more):
    return Variant(lambda: Glm4MoeLiteForCausalLM(Glm4MoeLiteConfig(**{**BASE, **more})), *([style] if style else []),
                   rules=RULES, matters=list(matters), exact=exact, limit=LIMIT, firm=firm)


VARIANTS = {
    "glm4_moe_lite-default": variant(None, [
        change("routed_scaling_factor", to=1.0), change("norm_topk_prob", to=False), change("rope_interleave", to=False),
        change("num_experts_per_tok", to=3), change("rope_parameters", "rope_theta", to=100.0)]),
    "glm4_moe_lite-published": variant(published, [change("rope_theta", to=100.0)], n_routed_experts=4, num_hidden_layers=2,
                                       exact=(r"e_score_correction_bias$",)),
    "glm4_moe_lite-groups": variant(None, [
        change("n_group", to=2), change("topk_group", to=1), change("topk_group", to=4), change("norm_topk_prob", to=True)],
        n_routed_experts=8, n_group=4, topk_group=2, num_hidden_layers=2, norm_topk_prob=False, routed_scaling_factor=2.5,
        n_shared_experts=2, tie_word_embeddings=True),
    # Queries from one projection, values wider than keys, a dense last layer.
    "glm4_moe_lite-direct": variant(None, [change("attention_bias", to=False), change("rope_interleave", to=True)],
                                    q_lora_rank=None, v_head_dim=24, attention_bias=True, rope_interleave=False,
                                    n_routed_experts=4, mlp_layer_types=["dense", "sparse", "dense"]),
    "glm4_moe_lite-yarn": variant(None, [
        change("rope_parameters", "mscale_all_dim", to=None), change("rope_parameters", "mscale", to=None),
        change("rope_parameters", "factor", to=8.0)],
        firm=True, num_hidden_layers=2, n_routed_experts=4, rope_parameters=YARN),
}

if __name__ == "__main__":
    tiny.main(VARIANTS)
