"""The tables of latent attention, for tables.py: as transformers saves them, and as publishers do."""

import transformers as tf

from checkpoint import four

KEYS = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 4, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 12,
        "v_head_dim": 10, "max_position_embeddings": 128, "pad_token_id": None}
EXPERTS = dict(n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, n_shared_experts=2, n_group=2,
               topk_group=1, first_k_dense_replace=1)
INDEX = dict(index_n_heads=4, index_head_dim=16, index_topk=12)
GROWS = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 32,
         "llama_4_scaling_beta": 0.1}
# The prefix of the classes, further keys, keys that publishers add, and whether they number a prediction head as a layer.
TYPES = {
    "deepseek_v2": ("DeepseekV2", dict(**EXPERTS, topk_method="group_limited_greedy"),
                    dict(scoring_func="softmax", moe_layer_freq=1), False),
    "deepseek_v3": ("DeepseekV3", EXPERTS, dict(topk_method="noaux_tc", scoring_func="sigmoid", num_nextn_predict_layers=1), True),
    "deepseek_v32": ("DeepseekV32", dict(**EXPERTS, **INDEX), dict(topk_method="noaux_tc", num_nextn_predict_layers=1), True),
    "glm_moe_dsa": ("GlmMoeDsa", dict(**EXPERTS, **INDEX, indexer_types=["full", "shared"]),
                    dict(topk_method="noaux_tc", num_nextn_predict_layers=1), True),
    "longcat_flash": ("LongcatFlash", dict(n_routed_experts=4, zero_expert_num=2, moe_topk=3, expert_ffn_hidden_size=16),
                      dict(attention_method="MLA", zero_expert_type="identity", mla_scale_q_lora=True), False),
    "minicpm3": ("MiniCPM3", dict(mlp_bias=True), dict(), False),
    "mistral4": ("Mistral4", dict(**EXPERTS, rope_parameters=GROWS), dict(), False),
    "youtu": ("Youtu", dict(attention_bias=True), dict(), False),
}


V4 = dict(
    vocab_size=64, hidden_size=32, moe_intermediate_size=16, num_hidden_layers=3, num_attention_heads=4, head_dim=16,
    q_lora_rank=24, n_routed_experts=4, num_experts_per_tok=2, hc_mult=2, o_groups=2, o_lora_rank=12, index_n_heads=4,
    index_head_dim=12, index_topk=6, sliding_window=9, partial_rotary_factor=0.5, max_position_embeddings=128,
    layer_types=["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"],
    mlp_layer_types=["hash_moe", "moe", "moe"])


def deepseek_v4(saved, write):
    """Writes the tables of DeepSeek V4, which transformers saves almost as its publisher names them."""
    config, tensors = saved(tf.DeepseekV4ForCausalLM(tf.DeepseekV4Config(**V4)))
    write("deepseek_v4", config, tensors)
    for key in ("compress_rates", "layer_types", "mlp_layer_types", "rope_parameters", "partial_rotary_factor"):
        config.pop(key)
    config.update(compress_ratios=[0, 4, 128, 0], num_hash_layers=1, topk_method="noaux_tc", num_nextn_predict_layers=1)
    out = {}
    for name, spec in tensors.items():
        name = name.replace("model.embed_tokens.", "embed.").replace("model.hc_head.hc_", "hc_head_").removeprefix("model.")
        out[name.replace(".attn.norm.", ".attn.kv_norm.")] = spec
    out["mtp.0.e_proj.weight"] = ["BF16", 32, 32]
    write("deepseek_v4-published", config, out)


def tables(saved, write):
    deepseek_v4(saved, write)
    for name, (prefix, more, added, predicts) in TYPES.items():
        config, tensors = saved(getattr(tf, prefix + "ForCausalLM")(getattr(tf, prefix + "Config")(**{**KEYS, **more})))
        write(name, config, tensors)
        config = {**four(config), **added}
        if "num_experts" in config:
            config["n_routed_experts"] = config.pop("num_experts")
        out = published(tensors, predicts)
        if name == "longcat_flash":
            out = {n: s for n, s in out.items() if ".experts.4." not in n and ".experts.5." not in n}  # they have no weights
            out |= longcat_head(out)
        write(name + "-published", config, out)


def longcat_head(tensors):
    """Returns a head for tokens after the next: a layer like the second half of one, without experts."""
    more, out = "model.mtp.layers.0.", {}
    for part, to in (("self_attn.1.", "self_attn."), ("mlps.1.", "transformer_layer.mlp."),
                     ("input_layernorm.1.", "input_layernorm."), ("post_attention_layernorm.1.", "post_attention_layernorm.")):
        start = "model.layers.0." + part
        out |= {more + to + n.removeprefix(start): spec for n, spec in tensors.items() if n.startswith(start)}
    for name, shape in ((more + "eh_proj", [32, 64]), (more + "enorm.m", [32]), (more + "hnorm.m", [32]),
                        ("model.mtp.norm", [32]), ("model.mtp.embed_tokens", [64, 32])):
        out[name + ".weight"] = ["BF16", *shape]
    return out


def published(tensors, predicts):
    """Returns the tensors of a published checkpoint."""
    out = {}
    for name, spec in tensors.items():
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            base, kind = name.rsplit(".", 1)
            for i in range(spec[1]):
                if kind == "down_proj":
                    out[f"{base}.{i}.down_proj.weight"] = [spec[0], *spec[2:]]
                else:
                    for part in ("gate_proj", "up_proj"):
                        out[f"{base}.{i}.{part}.weight"] = [spec[0], spec[2] // 2, spec[3]]
            continue
        out[name] = ["F32", *spec[1:]] if name.endswith("e_score_correction_bias") else spec
    if predicts:
        for name, spec in list(out.items()):
            if name.startswith("model.layers.1."):
                out[name.replace("layers.1.", "layers.2.", 1)] = spec
        for name, shape in (("eh_proj.weight", [32, 64]), ("enorm.weight", [32]), ("hnorm.weight", [32]),
                            ("shared_head.norm.weight", [32]), ("shared_head.head.weight", [64, 32]),
                            ("embed_tokens.weight", [64, 32])):
            out["model.layers.2." + name] = ["BF16", *shape]
    return out
