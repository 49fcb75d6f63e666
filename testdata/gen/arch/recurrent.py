"""The tables of models with recurrent layers, for tables.py: as transformers saves them, and with the keys of transformers 4."""

import transformers as tf

import of_mlx
from checkpoint import four

KEYS = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2}
ATTENTION = {"intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128}
HYBRID = {**ATTENTION, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_n_groups": 2}
TOKENS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
MIXED = ["linear_attention", "full_attention"]
# The prefix of the classes, further keys, and keys that publishers leave out.
TYPES = {
    "mamba": ("Mamba", dict(state_size=5, use_bias=True, time_step_rank=3), []),
    "jamba": ("Jamba", dict(**ATTENTION, num_experts=4, attn_layer_period=2, attn_layer_offset=1, mamba_d_state=5), []),
    "lfm2": ("Lfm2", dict(**ATTENTION, layer_types=["conv", "full_attention"], conv_bias=True, block_multiple_of=8), []),
    "lfm2_moe": ("Lfm2Moe", dict(**ATTENTION, layer_types=["conv", "full_attention"], num_experts=4, num_experts_per_tok=2,
                                 num_dense_layers=1, moe_intermediate_size=24), []),
    "mamba2": ("Mamba2", dict(num_heads=4, head_dim=16, state_size=8, n_groups=2, use_bias=True), []),
    "bamba": ("Bamba", dict(**HYBRID, attn_layer_indices=[1], mlp_bias=True), []),
    "granitemoehybrid": ("GraniteMoeHybrid", dict(**HYBRID, layer_types=MIXED, num_local_experts=4, shared_intermediate_size=24,
                                                  mamba_proj_bias=True), []),
    "falcon_h1": ("FalconH1", dict(**HYBRID, head_dim=8, mamba_d_ssm=64, mamba_rms_norm=True, projectors_bias=True), []),
    "nemotron_h": ("NemotronH", dict(
        **ATTENTION, head_dim=8, mamba_num_heads=4, mamba_head_dim=16, ssm_state_size=8, n_groups=2, n_routed_experts=4,
        moe_intermediate_size=24, moe_shared_expert_intermediate_size=40, moe_latent_size=16, mlp_bias=True, use_bias=True,
        layers_block_type=[*MIXED, "mlp", "moe"]), []),
    "minimax": ("MiniMax", dict(**ATTENTION, layer_types=MIXED, num_local_experts=4, block_size=8), []),
    "recurrent_gemma": ("RecurrentGemma", dict(**ATTENTION, lru_width=48, block_types=["recurrent", "attention"]), []),
    "zamba2": ("Zamba2", dict(
        **{**ATTENTION, "num_key_value_heads": 4}, num_hidden_layers=4, layers_block_type=["linear_attention", *["hybrid"] * 3],
        n_mamba_heads=4, mamba_d_state=8, num_mem_blocks=2, use_shared_attention_adapter=True, adapter_rank=4, use_mem_rope=True,
        add_bias_linear=True), []),
    "kimi_linear": ("KimiLinear", dict(
        **{**ATTENTION, "num_key_value_heads": 4}, **TOKENS, layer_types=MIXED, kv_lora_rank=16, qk_nope_head_dim=8,
        qk_rope_head_dim=4, v_head_dim=8, num_experts=4, num_experts_per_token=2, moe_intermediate_size=16, num_shared_experts=1,
        linear_head_dim=8, linear_num_heads=4), []),
    "olmo_hybrid": ("OlmoHybrid", dict(**ATTENTION, **TOKENS, layer_types=MIXED, linear_num_key_heads=2), []),
}


def kimi_linear(config):
    """Returns the configuration of Kimi Linear as published: the delta nets have an object of their own."""
    kinds, mlps = config.pop("layer_types"), config.pop("mlp_layer_types")
    numbers = lambda kind: [i + 1 for i, k in enumerate(kinds) if k == kind]
    own = {
        "full_attn_layers": numbers("full_attention"), "kda_layers": numbers("linear_attention"),
        "head_dim": config.pop("linear_head_dim"), "num_heads": config.pop("linear_num_heads"),
        "short_conv_kernel_size": config.pop("linear_conv_kernel_dim")}
    return {**config, "first_k_dense_replace": mlps.index("sparse"), "mla_use_nope": True, "linear_attn_config": own}


def tables(saved, write):
    for name, (prefix, more, left_out) in TYPES.items():
        config = getattr(tf, prefix + "Config")(**{**KEYS, **more})
        config, tensors = saved(getattr(tf, prefix + "ForCausalLM")(config))
        write(name, config, tensors)
        old = {k: v for k, v in four(config).items() if k not in left_out}
        write(name + "-published", kimi_linear(old) if name == "kimi_linear" else old, tensors)
    lfm3(saved, write)
    rwkv7(write)


def lfm3(saved, write):
    """LFM3 is published with the keys of transformers 5, whose ropes are those of layer types."""
    config, tensors = saved(tf.Lfm3ForCausalLM(tf.Lfm3Config(
        **{**KEYS, "num_hidden_layers": 5}, **ATTENTION, head_dim=8, sliding_window=8, conv_bias=True, attention_bias=True,
        pad_token_id=0)))
    write("lfm3", config, tensors)
    write("lfm3-published", {k: v for k, v in config.items() if k != "layer_types"}, tensors)


def rwkv7(write):
    """The table of RWKV 7, which transformers lacks: as published, in the layout of the first files, and of mlx-lm."""
    config = {**KEYS, "architectures": ["RWKV7ForCausalLM"], "model_type": "rwkv7", "intermediate_size": 96, "norm_eps": 1e-5,
              "head_dim": 8, "a_low_rank_dim": 6, "v_low_rank_dim": 4, "gate_low_rank_dim": 10, "decay_low_rank_dim": 5,
              "torch_dtype": "bfloat16"}
    tensors = {n: ["BF16", *x.shape] for n, x in of_mlx.flat(of_mlx.Model(config, {}).made.parameters())}
    write("rwkv7-mlx", config, tensors)
    vectors = (".k_k", ".k_a", ".g_norm.weight", ".g_norm.bias")
    published = {n: ["BF16", spec[1] * spec[2]] if n.endswith(vectors) else spec for n, spec in tensors.items()}
    write("rwkv7", {**config, "value_dim": [32, 32], "attn": None, "norm_first": True}, published)
    first = {n: spec for n, spec in published.items() if ".attn.x_" not in n}
    first |= {f"model.layers.{i}.attn.x_x": ["BF16", 6, 32] for i in range(2)}
    # The first layer's values are not mixed with others, but some files have the weights for it.
    first |= {n.replace("layers.1", "layers.0"): spec for n, spec in published.items() if "layers.1.attn.v_lora" in n}
    write("rwkv7-published", {k: v for k, v in config.items() if k != "intermediate_size"} | {"hidden_ratio": 3.0}, first)
