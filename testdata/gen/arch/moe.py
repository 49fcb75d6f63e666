"""The tables of mixtures of experts, for tables.py: as transformers saves them, and with the keys of transformers 4."""

import transformers as tf

from checkpoint import four

KEYS = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 128, "pad_token_id": 0}
MOE = {"num_experts_per_tok": 2, "moe_intermediate_size": 16}
ROUTED = {**MOE, "n_routed_experts": 4}
# The prefix of the classes, further keys, and keys that publishers leave out.
TYPES = {
    "mixtral": ("Mixtral", dict(num_local_experts=4), []),
    "qwen2_moe": ("Qwen2Moe", dict(**MOE, num_experts=4, shared_expert_intermediate_size=24), ["layer_types"]),
    "olmoe": ("Olmoe", dict(num_experts=4, num_experts_per_tok=2, attention_bias=True), []),
    "granitemoe": ("GraniteMoe", dict(num_local_experts=4, embedding_multiplier=12.0), []),
    "glm4_moe": ("Glm4Moe", dict(**ROUTED, use_qk_norm=True, attention_bias=True), ["num_mtp_layers"]),
    "dots1": ("Dots1", dict(**ROUTED, n_shared_experts=1, first_k_dense_replace=1), ["layer_types"]),
    "minimax_m2": ("MiniMaxM2", dict(num_local_experts=4, num_experts_per_tok=2, head_dim=16), []),
    "solar_open": ("SolarOpen", dict(**ROUTED, head_dim=16), []),
    "exaone_moe": ("ExaoneMoe", dict(**MOE, num_experts=4, sliding_window=8), ["layer_types", "mlp_layer_types"]),
    "ernie4_5_moe": ("Ernie4_5_Moe", dict(moe_num_experts=4, moe_k=2, moe_intermediate_size=16, use_bias=True), []),
    "hunyuan_v1_moe": ("HunYuanMoEV1", dict(num_experts=4, moe_topk=2, head_dim=16, attention_bias=True), []),
    "cohere2_moe": ("Cohere2Moe", dict(num_experts=4, num_experts_per_tok=2, num_shared_experts=1, head_dim=16), ["layer_types"]),
    "gpt_oss": ("GptOss", dict(num_local_experts=4, num_experts_per_tok=2, head_dim=16), ["layer_types"]),
    "afmoe": ("Afmoe", dict(**MOE, num_experts=4, head_dim=16, sliding_window=8), ["layer_types"]),
    "llama4": ("Llama4", dict(num_local_experts=4, intermediate_size_mlp=24, head_dim=16, interleave_moe_layer_step=2,
                              attention_chunk_size=8), ["layer_types", "moe_layers"]),
    "phimoe": ("Phimoe", dict(num_local_experts=4, attention_bias=True, lm_head_bias=True), []),
}


def in_blocks(tensors):
    """Names experts as OpenAI publishes them: codes and scales of mxfp4, which are read as one tensor in bf16."""
    out = {}
    for name, (kind, *shape) in tensors.items():
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            name, shape = name + "_blocks", [shape[0], shape[2], shape[1]]
        out[name] = [kind, *shape]
    return out


def apart(tensors):
    """Names experts as mlx-lm does."""
    out = {}
    for name, (kind, *shape) in in_blocks(tensors).items():
        name = name.replace("_blocks", ".weight").replace("_proj_bias", "_proj.bias")
        if "gate_up_proj" in name:
            shape[1] //= 2
            out[name.replace("gate_up", "gate")] = [kind, *shape]
            name = name.replace("gate_up", "up")
        out[name] = [kind, *shape]
    return out


def tables(saved, write):
    for name, (prefix, more, left_out) in TYPES.items():
        kind = getattr(tf, prefix + "TextConfig", None) or getattr(tf, prefix + "Config")
        config = kind(**{**KEYS, **more})
        config, tensors = saved(getattr(tf, prefix + "ForCausalLM")(config))
        write(name, config, tensors)
        old = {k: v for k, v in four(config).items() if k not in left_out}
        write(name + "-published", old, in_blocks(tensors) if name == "gpt_oss" else tensors)
        if name == "gpt_oss":
            write("gpt_oss-mlx", old, apart(tensors))
