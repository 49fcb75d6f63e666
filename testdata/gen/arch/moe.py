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
    "laguna": ("Laguna", dict(**MOE, num_experts=4, shared_expert_intermediate_size=24, head_dim=16,
                              num_attention_heads_per_layer=[4, 2]), []),
    "mimo_v2_flash": ("MiMoV2Flash", dict(**ROUTED, head_dim=16, v_head_dim=12, sliding_window=9), []),
    "phimoe": ("Phimoe", dict(num_local_experts=4, attention_bias=True, lm_head_bias=True), []),
}


def mimo(config, tensors):
    """Returns a configuration and tensors with the publisher's keys and names, and two heads for tokens after the next."""
    left = ("layer_types", "mlp_layer_types", "rope_parameters", "rope_scaling", "sliding_window")
    config = {k: v for k, v in config.items() if k not in left}
    config.update(hybrid_layer_pattern=[0, 1], moe_layer_freq=[0, 1], swa_num_key_value_heads=4, swa_num_attention_heads=4,
                  swa_head_dim=16, swa_v_head_dim=12, sliding_window_size=8, swa_rope_theta=10000, partial_rotary_factor=0.334,
                  add_swa_attention_sink_bias=True, add_full_attention_sink_bias=False, layernorm_epsilon=1e-5,
                  n_shared_experts=None, routed_scaling_factor=None)
    tensors = {n.replace("self_attn.sinks", "self_attn.attention_sink_bias"): t for n, t in tensors.items()}
    name = "model.mtp.layers.0."
    layer = {name + n.removeprefix("model.layers.1."): t for n, t in tensors.items() if n.startswith("model.layers.1.self_attn.")}
    layer |= {name + n.removeprefix("model.layers.0."): t for n, t in tensors.items() if n.startswith("model.layers.0.mlp.")}
    norms = {f"{name}{n}.weight": ["BF16", 32] for n in ("enorm", "hnorm", "input_layernorm", "pre_mlp_layernorm", "final_layernorm")}
    return config, {**tensors, **layer, **norms, name + "eh_proj.weight": ["BF16", 32, 64],
                    "model.mtp.layers.1.enorm.weight": ["BF16", 32]}


def glm(config, tensors):
    """Adds the layer after the last, a head for tokens after the next."""
    layer = {n.replace("layers.1.", "layers.2."): t for n, t in tensors.items() if n.startswith("model.layers.1.")}
    norms = {f"model.layers.2.{n}.weight": ["BF16", 32] for n in ("enorm", "hnorm", "shared_head.norm")}
    return config, {**tensors, **layer, **norms, "model.layers.2.eh_proj.weight": ["BF16", 32, 64]}


def exaone(config, tensors):
    """Adds a head for tokens after the next: a layer like the first, without experts."""
    layer = {"mtp." + n.removeprefix("model."): t for n, t in tensors.items() if n.startswith("model.layers.0.")}
    norms = {f"mtp.{n}.weight": ["BF16", 32] for n in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm")}
    return config, {**tensors, **layer, **norms, "mtp.fc.weight": ["BF16", 32, 64]}


def old(config):
    """Returns a configuration with the keys of transformers 4. Ropes of kinds of layers stay."""
    ropes = config["rope_parameters"]
    if "full_attention" not in ropes:
        return four(config)
    config = four({**config, "rope_parameters": ropes["full_attention"]})
    return {**{k: v for k, v in config.items() if k not in ("rope_theta", "rope_scaling", "partial_rotary_factor")},
            "rope_parameters": ropes}


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


PUBLISHED = {"mimo_v2_flash": mimo, "glm4_moe": glm, "exaone_moe": exaone, "gpt_oss": lambda config, tensors: (config, in_blocks(tensors))}


def tables(saved, write):
    for name, (prefix, more, left_out) in TYPES.items():
        kind = getattr(tf, prefix + "TextConfig", None) or getattr(tf, prefix + "Config")
        config = kind(**{**KEYS, **more})
        config, tensors = saved(getattr(tf, prefix + "ForCausalLM")(config))
        write(name, config, tensors)
        own = {k: v for k, v in old(config).items() if k not in left_out}
        if name == "gpt_oss":
            write("gpt_oss-mlx", own, apart(tensors))
        write(name + "-published", *PUBLISHED.get(name, lambda *both: both)(own, tensors))
