"""Writes the tiny checkpoints of latent attention, with random weights, and their goldens.

    latent_tiny.py [NAME...]
"""

import reference  # first: keeps transformers offline

import torch
from transformers import Mistral3Config, Mistral3ForConditionalGeneration

import checkpoint
import dense
import tiny
from dense import four, rope
from dense_more_tiny import VISION
from glm4_moe_lite_tiny import YARN
from moe import EXACT, RULES as ROUTERS, exact, flipped, grouped, head, next_layer as add_next
from tiny import change

RULES = ((r"_a_layernorm\.weight$", lambda normal: 0.9 + 0.15 * normal), *ROUTERS)
HEADS = dict(num_key_value_heads=4, q_lora_rank=32, kv_lora_rank=32, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16)
EXPERTS = dict(n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=32)
# Published models have equal scales; those of glm4_moe_lite-yarn differ.
SCALED = {**YARN, "mscale": 0.707, "mscale_all_dim": 0.707}
LIMIT = 480 * 1024


def family(name, rules=(), **common):
    """Is dense.family for latent attention."""
    published, saved = dense.family(name, rules=(*rules, *RULES), **{**HEADS, **common})

    def variant(kind, matters, more):
        v = exact(kind(*matters, **more))
        v.limit, v.firm = LIMIT, bool(more.get("firm"))
        return v

    return lambda *m, **more: variant(published, m, more), lambda *m, **more: variant(saved, m, more)


def next_layer(copies):
    """Returns a style: the published form, with a multi-token prediction head after the last layer.

    Its layer has the last one's tensors with the other sign, and copies of the embedding and the output head.
    """

    def style(config, tensors):
        config, tensors = four(config, tensors)
        config["n_routed_experts"] = config.pop("num_experts", config.get("n_routed_experts"))
        config.pop("num_mtp_layers", None)
        config.update(num_nextn_predict_layers=1, topk_method="noaux_tc", scoring_func="sigmoid", moe_layer_freq=1)
        tensors = checkpoint.apart(tensors)
        tensors = add_next(config, tensors, RULES)
        more = f"model.layers.{config['num_hidden_layers']}."
        if copies:
            tensors[more + "embed_tokens.weight"] = tensors["model.embed_tokens.weight"]
            tensors[more + "shared_head.head.weight"] = tensors["lm_head.weight"]
        return config, tensors

    return style


def deepseek_v3():
    published, saved = family("DeepseekV3")
    more = [change("rope_scaling", k, to=v) for k, v in (("mscale_all_dim", None), ("factor", 8.0))]
    return {
        "deepseek_v3-published": published(
            *more, change("routed_scaling_factor", to=1.0), change("norm_topk_prob", to=False), style=next_layer(True),
            first_k_dense_replace=1, n_group=2, topk_group=1, rope_parameters=SCALED, **EXPERTS),
        "deepseek_v3-saved": saved(
            change("n_group", to=2), change("topk_group", to=3), change("norm_topk_prob", to=True),
            change("rope_interleave", to=True), change("attention_bias", to=False), q_lora_rank=None, v_head_dim=24,
            kv_lora_rank=16, n_shared_experts=2, moe_intermediate_size=16, first_k_dense_replace=1, rope_interleave=False,
            attention_bias=True, tie_word_embeddings=True, num_mtp_layers=0, **grouped("n_routed_experts"), **rope(1e4)),
    }


def deepseek_v2():
    published, saved = family("DeepseekV2")

    def keys(config, tensors):
        config, tensors = four(config, tensors)
        config["n_routed_experts"] = config.pop("num_experts", config.get("n_routed_experts"))
        config.update(scoring_func="softmax", moe_layer_freq=1)
        return config, checkpoint.apart(tensors)

    return {
        "deepseek_v2-published": published(
            change("routed_scaling_factor", to=3.0), change("rope_scaling", "mscale_all_dim", to=None), style=keys,
            q_lora_rank=None, first_k_dense_replace=1, rope_parameters=SCALED, **EXPERTS),
        "deepseek_v2-saved": saved(
            change("n_group", to=2), change("topk_group", to=3), change("topk_method", to="greedy"),
            change("attention_bias", to=False), change("mlp_bias", to=False), topk_method="group_limited_greedy", n_group=4,
            topk_group=2, n_routed_experts=8, num_experts_per_tok=3, routed_scaling_factor=4.0, v_head_dim=24,
            kv_lora_rank=16, n_shared_experts=2, moe_intermediate_size=16, first_k_dense_replace=1, attention_bias=True,
            mlp_bias=True, tie_word_embeddings=True, **rope(1e4)),
    }


def youtu():
    published, saved = family("Youtu", pad_token_id=None)  # loading a model sets the embedding of that token to zero
    return {
        "youtu-published": published(change("rope_theta", to=100.0), tie_word_embeddings=True, **rope(1.6e6)),
        "youtu-saved": saved(
            change("rope_interleave", to=True), change("attention_bias", to=False), q_lora_rank=None, v_head_dim=24,
            kv_lora_rank=16, rope_interleave=False, attention_bias=True, **rope(1e4)),
    }


def minicpm3():
    # Embeddings are scaled up, and the logits with them.
    embeddings = ((r"embed_tokens\.weight$", lambda normal: 0.02 * normal),)
    published, saved = family("MiniCPM3", rules=embeddings)
    factors = {"short_factor": [1.0, 1.3, 1.7, 2.0], "long_factor": [1.2, 2.5, 4.0, 8.0]}
    return {
        "minicpm3-published": published(
            change("scale_emb", to=6), change("scale_depth", to=1.0), change("dim_model_base", to=128),
            change("rope_scaling", "short_factor", to=[1.0] * 4), scale_emb=12, scale_depth=1.4, dim_model_base=256,
            tie_word_embeddings=True, **rope(1e4, "longrope", original_max_position_embeddings=128, **factors)),
        "minicpm3-saved": saved(
            change("attention_bias", to=False), change("mlp_bias", to=False), change("scale_emb", to=5), q_lora_rank=None,
            v_head_dim=24, kv_lora_rank=16, attention_bias=True, mlp_bias=True, scale_emb=10, scale_depth=2.0,
            dim_model_base=48, tie_word_embeddings=False, **rope(1e4)),
    }


def mistral4():
    published, saved = family("Mistral4")
    grows = {**SCALED, "llama_4_scaling_beta": 0.5, "original_max_position_embeddings": 16}

    def make():
        text = dict(dense.PUBLISHED, model_type="mistral4", first_k_dense_replace=1, rope_parameters=grows, **HEADS, **EXPERTS)
        return Mistral3ForConditionalGeneration(Mistral3Config(
            text_config=text, vision_config=VISION, tie_word_embeddings=False, image_token_index=3))

    whole = published(
        change("text_config", "rope_parameters", "llama_4_scaling_beta", to=0.0),
        change("text_config", "routed_scaling_factor", to=2.0), style=lambda *stored: stored)
    whole.make = make
    return {
        "mistral4-published": whole,
        "mistral4-saved": saved(
            change("n_group", to=2), change("topk_group", to=3), change("norm_topk_prob", to=True),
            change("rope_interleave", to=True), change("attention_bias", to=False), q_lora_rank=None, v_head_dim=24,
            kv_lora_rank=16, n_shared_experts=2, moe_intermediate_size=16, first_k_dense_replace=1, rope_interleave=False,
            attention_bias=True, tie_word_embeddings=True, rope_parameters=grows, **grouped("n_routed_experts")),
    }


def indexed(name, stored, shared=()):
    """Returns the two variants of a model with sparse attention. Its budget is smaller than the text."""
    published, saved = family(name)
    # With few index heads several positions have a score of 0, of which transformers chooses any.
    index = dict(index_n_heads=16, index_head_dim=16, index_topk=12)
    prefix = {"DeepseekV32": "deepseek_v32", "GlmMoeDsa": "glm_moe_dsa"}[name]

    def keys(config, tensors):
        config, tensors = four(config, tensors)
        config["n_routed_experts"] = config.pop("num_experts", config.get("n_routed_experts"))
        for key in ("mlp_layer_types", "layer_types", "indexer_types"):
            config.pop(key, None)
        config.update(first_k_dense_replace=1, num_nextn_predict_layers=0, topk_method="noaux_tc", **stored)
        return config, checkpoint.apart(tensors)

    return {
        f"{prefix}-published": published(
            change("index_topk", to=8), change("routed_scaling_factor", to=1.0), style=keys, first_k_dense_replace=1, n_group=1,
            topk_group=1, num_hidden_layers=3, **index, **EXPERTS, **rope(1e4), **dict(shared)),
        f"{prefix}-saved": saved(
            change("index_topk", to=8), change("n_group", to=2), change("norm_topk_prob", to=True),
            change("attention_bias", to=False), q_lora_rank=16, v_head_dim=24, kv_lora_rank=16, n_shared_experts=2,
            moe_intermediate_size=16, first_k_dense_replace=1, attention_bias=True, tie_word_embeddings=True, index_n_heads=20,
            index_head_dim=12, index_topk=12, **grouped("n_routed_experts"), **rope(1e4)),
    }


def longcat_flash():
    published, saved = family("LongcatFlash")
    experts = dict(n_routed_experts=4, zero_expert_num=3, moe_topk=3, expert_ffn_hidden_size=32, num_hidden_layers=4,
                   head_dim=HEADS["qk_rope_head_dim"])

    def keys(config, tensors):
        config, tensors = four(config, tensors)
        config.update(attention_method="MLA", mla_scale_q_lora=True, mla_scale_kv_lora=True, zero_expert_type="identity",
                      router_bias=False)
        for i in range(config["zero_expert_num"]):  # they have no weights
            unused = f".experts.{config['n_routed_experts'] + i}."
            tensors = {n: t for n, t in tensors.items() if unused not in n}
        # The layer of the head is like the second half of one, without experts.
        more, last = "model.mtp.layers.0.", f"model.layers.{config['num_layers'] - 1}."
        for part, to in (("self_attn.1.", "self_attn."), ("mlps.1.", "transformer_layer.mlp."),
                         ("input_layernorm.1.", "input_layernorm."), ("post_attention_layernorm.1.", "post_attention_layernorm.")):
            tensors = {**tensors, **flipped(tensors, last + part, more + to)}
        tensors |= head(more, config["hidden_size"], RULES, vector="enorm.m", state="hnorm.m", norm="norm", join="eh_proj")
        tensors["model.mtp.norm.weight"] = tensors.pop(more + "norm.weight")
        return config, {**tensors, "model.mtp.embed_tokens.weight": tensors["model.embed_tokens.weight"]}

    matters = [change(k, to=v) for k, v in (("routed_scaling_factor", 1.0), ("moe_topk", 2), ("rope_theta", 100.0))]
    return {
        "longcat_flash-published": published(*matters, style=keys, routed_scaling_factor=3.0, **experts, **rope(1e7)),
        "longcat_flash-saved": saved(
            change("attention_bias", to=False), change("rope_parameters", "factor", to=1.0), q_lora_rank=16, v_head_dim=24,
            kv_lora_rank=16, attention_bias=True, tie_word_embeddings=True, rope_parameters=SCALED,
            **{**experts, "routed_scaling_factor": 2.0, "expert_ffn_hidden_size": 16}),
    }


VARIANTS = {**indexed("DeepseekV32", {}), **indexed("GlmMoeDsa", {"index_topk_freq": 2, "index_skip_topk_offset": 2}, [
    ("indexer_types", ["full", "full", "shared"])]), **deepseek_v3(), **deepseek_v2(), **youtu(), **minicpm3(), **mistral4(), **longcat_flash()}

if __name__ == "__main__":
    tiny.main(VARIANTS)
