"""Writes the tiny checkpoints of models with selective scans, with random weights, and their goldens.

    recurrent_tiny.py [NAME...]
"""

import reference  # first: keeps transformers offline

import checkpoint
import moe
import tiny
from dense import family, four, rope, without
from tiny import change

# What starts at zero or one, or in a regular order: random values show that each is used. Steps are about 0.2 and
# decays about 0.8, so that the state matters and lasts.
SCAN = (
    (r"\.A_log$", lambda normal: 0.3 * normal),
    (r"\.dt_bias$", lambda normal: -1 + 0.6 * normal),
    (r"\.D$", lambda normal: 0.8 + 0.4 * normal),
    (r"conv1d\.weight$", lambda normal: 0.5 * normal),
    (r"norm\w*\.weight$", lambda normal: 0.9 + 0.15 * normal),
    (r"correction_bias$", lambda normal: 0.2 * normal),
)
EXACT = (r"\.A_log$", r"\.D$", r"\.dt_bias$", r"dt_proj\.bias$", *moe.EXACT)


def scans(name, rules=(), **common):
    """Is dense.family for models with selective scans, which keep some tensors in float32."""

    kind, other = family(name, rules=(*rules, *SCAN), **common)

    def variant(of):
        def make(*matters, **more):
            made = of(*matters, **more)
            made.exact = EXACT
            return made

        return make

    return variant(kind), variant(other)


# Keys of models with attention, which the scripts give to all models.
ATTENTION = ("num_attention_heads", "num_key_value_heads", "max_position_embeddings", "intermediate_size")


def infinite(*drop):
    """Stores a checkpoint with the keys of transformers 4, without some: the largest step is the number Infinity."""

    def style(config, tensors):
        config = {k: v for k, v in four(config, tensors)[0].items() if k not in drop}
        return dict(config, time_step_limit=[0.0, float("inf")]), tensors

    return style


def mamba2():
    embeddings = ((r"embeddings\.weight$", lambda normal: 0.5 * normal),)
    tied = ((r"embeddings\.weight$", lambda normal: 0.12 * normal),)
    published, _ = scans("Mamba2", embeddings)
    _, saved = scans("Mamba2", tied)
    return {
        "mamba2-published": published(
            change("layer_norm_epsilon", to=0.5), style=infinite(*ATTENTION), num_heads=4, head_dim=32, expand=2, state_size=16, n_groups=1,
            chunk_size=16),
        "mamba2-saved": saved(
            change("time_step_limit", to=[0.0, 0.15]), num_heads=8, head_dim=8, expand=2, state_size=8,
            n_groups=2, conv_kernel=3, chunk_size=8, use_bias=True, time_step_limit=(0.1, 0.4), tie_word_embeddings=True),
    }


def old_layers(config, tensors):
    """Stores a checkpoint with the words of transformers 4 for layers."""
    config, tensors = infinite()(config, tensors)
    words = {"linear_attention": "mamba", "full_attention": "attention"}
    for key in ("layer_types", "layers_block_type"):
        if key in config:
            config[key] = [words.get(word, word) for word in config[key]]
    return config, tensors


def bamba():
    published, saved = scans("Bamba")
    return {
        "bamba-published": published(
            change("rms_norm_eps", to=0.5), style=infinite(), attn_layer_indices=[1], mamba_n_heads=4, mamba_d_head=32,
            mamba_d_state=16, mamba_chunk_size=16),
        "bamba-saved": saved(
            change("time_step_limit", to=[0.0, 0.15]), attn_layer_indices=[0, 2], mamba_n_heads=8, mamba_d_head=8, mamba_d_state=8,
            mamba_n_groups=2, mamba_d_conv=3, mamba_chunk_size=8, mamba_proj_bias=True, mamba_conv_bias=False,
            time_step_limit=(0.1, 0.4), attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
    }


MULTIPLIERS = dict(embedding_multiplier=1.5, logits_scaling=0.8, residual_multiplier=0.7, attention_multiplier=0.2)


def granitemoehybrid():
    published, saved = scans("GraniteMoeHybrid")

    def block_sparse(config, tensors):
        config, tensors = old_layers(config, tensors)
        config["num_local_experts"] = config.pop("num_experts", config.get("num_local_experts", 0))
        return config, checkpoint.rename(
            tensors, (r"block_sparse_moe\.experts\.gate_up_proj", "block_sparse_moe.input_linear.weight"),
            (r"block_sparse_moe\.experts\.down_proj", "block_sparse_moe.output_linear.weight"),
            (r"block_sparse_moe\.router\.weight", "block_sparse_moe.router.layer.weight"))

    return {
        "granitemoehybrid-published": published(
            change("residual_multiplier", to=0.9), change("position_embedding_type", to="rope"), style=block_sparse,
            layer_types=["linear_attention", "full_attention"], mamba_n_heads=4, mamba_d_head=32, mamba_d_state=16,
            mamba_chunk_size=16, num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=64,
            position_embedding_type="nope", **MULTIPLIERS),
        "granitemoehybrid-saved": saved(
            change("logits_scaling", to=1.6), change("time_step_limit", to=[0.0, 0.15]),
            layer_types=["linear_attention", "full_attention", "linear_attention"], mamba_n_heads=8, mamba_d_head=8,
            mamba_d_state=8, mamba_n_groups=2, mamba_d_conv=3, mamba_chunk_size=8, mamba_proj_bias=True, mamba_conv_bias=False,
            time_step_limit=(0.1, 0.4), num_local_experts=0, shared_intermediate_size=48, position_embedding_type="rope",
            attention_bias=True, tie_word_embeddings=True, **MULTIPLIERS, **rope(5e4)),
    }


def falcon_h1():
    published, saved = scans("FalconH1")
    factors = dict(
        embedding_multiplier=1.3, lm_head_multiplier=0.8, mlp_multipliers=[0.7, 1.4], key_multiplier=0.6,
        attention_out_multiplier=0.9, attention_in_multiplier=1.2, ssm_multipliers=[0.8, 1.3, 0.9, 1.1, 0.7],
        ssm_in_multiplier=1.25, ssm_out_multiplier=0.75)
    return {
        "falcon_h1-published": published(
            *(change(key, to=[x / 2 for x in value] if isinstance(value, list) else value / 2) for key, value in factors.items()),
            style=infinite(), head_dim=16, mamba_d_ssm=128, mamba_n_heads=4, mamba_d_head=32, mamba_d_state=16,
            mamba_chunk_size=16, **factors),
        "falcon_h1-saved": saved(
            change("mamba_norm_before_gate", to=False), head_dim=16, mamba_d_ssm=None, mamba_n_heads=8, mamba_d_head=8,
            mamba_d_state=8, mamba_n_groups=2, mamba_d_conv=3, mamba_chunk_size=8, mamba_proj_bias=True, mamba_conv_bias=False,
            mamba_rms_norm=True, time_step_limit=(0.1, 0.4), projectors_bias=True, attention_bias=True, mlp_bias=True,
            tie_word_embeddings=True, **factors),
        "falcon_h1-gate_first": saved(
            change("mamba_norm_before_gate", to=True), head_dim=8, mamba_d_ssm=48, mamba_n_heads=4, mamba_d_head=12,
            mamba_d_state=8, mamba_n_groups=2, mamba_chunk_size=8, mamba_rms_norm=True, mamba_norm_before_gate=False, **factors),
    }


def nemotron_h():
    embeddings = ((r"embeddings\.weight$", lambda normal: 0.5 * normal),)
    published, saved = scans("NemotronH", embeddings)

    def backbone(config, tensors):
        config, tensors = infinite()(config, tensors)
        letters = {"linear_attention": "M", "full_attention": "*", "mlp": "-", "moe": "E"}
        kinds = config.pop("layers_block_type", None) or config.pop("layer_types")
        config.update(num_hidden_layers=len(kinds), hybrid_override_pattern="".join(letters[k] for k in kinds))
        out = {}
        for name, tensor in tensors.items():
            name = name.replace("model.", "backbone.", 1) if name.startswith("model.") else name
            if tensor.dim() == 3 and ".experts." in name:
                for e, part in enumerate(tensor):
                    out[name.replace(".experts.", f".experts.{e}.") + ".weight"] = part
            else:
                out[name] = tensor
        return config, out

    def layers(*kinds):
        words = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}
        return {"layers_block_type": [words[k] for k in kinds]}

    return {
        "nemotron_h-published": published(
            change("routed_scaling_factor", to=2.5), change("layer_norm_epsilon", to=0.5), style=backbone, head_dim=16,
            mamba_num_heads=4, mamba_head_dim=32, ssm_state_size=16, n_groups=2, chunk_size=16, n_routed_experts=4,
            num_experts_per_tok=2, moe_intermediate_size=64, moe_shared_expert_intermediate_size=64, routed_scaling_factor=1.3,
            time_step_min=0.15, **layers(*"ME*M-")),
        "nemotron_h-saved": saved(
            change("time_step_min", to=0.3), head_dim=8, mamba_num_heads=6, mamba_head_dim=8, ssm_state_size=8, n_groups=3,
            conv_kernel=3, chunk_size=8, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=24,
            moe_shared_expert_intermediate_size=40, n_group=4, topk_group=2, norm_topk_prob=False, routed_scaling_factor=1.7,
            moe_latent_size=16, use_bias=True, use_conv_bias=False, mlp_bias=True, time_step_min=0.1,
            **layers(*"*ME-ME")),
    }


def mamba():
    """Mamba's steps come from a projection, whose bias is the one that other models call dt_bias."""
    more = ((r"dt_proj\.bias$", lambda normal: -1 + 0.6 * normal),)
    published, _ = scans("Mamba", ((r"embeddings\.weight$", lambda normal: 0.12 * normal), *more))
    _, saved = scans("Mamba", ((r"embeddings\.weight$", lambda normal: 0.5 * normal), *more))
    return {
        "mamba-published": published(
            change("layer_norm_epsilon", to=0.5), style=without(*ATTENTION), state_size=16, expand=2, intermediate_size=128,
            tie_word_embeddings=True),
        "mamba-saved": saved(
            change("hidden_act", to="relu"), state_size=5, intermediate_size=64, time_step_rank=3, conv_kernel=3, use_bias=True,
            use_conv_bias=False),
    }


def jamba():
    published, saved = scans("Jamba", ((r"dt_proj\.bias$", lambda normal: -1 + 0.6 * normal),))

    def apart(config, tensors):
        config, tensors = moe.four(config, tensors)
        return config, checkpoint.apart(tensors, r"feed_forward\.experts")

    return {
        "jamba-published": published(
            change("rms_norm_eps", to=0.5), change("num_experts_per_tok", to=1), style=apart, num_experts=4,
            num_experts_per_tok=2, attn_layer_period=2, attn_layer_offset=1, mamba_d_state=16, mamba_dt_rank=4),
        "jamba-saved": saved(
            change("num_experts_per_tok", to=3), num_experts=6, num_experts_per_tok=2, attn_layer_period=3, attn_layer_offset=0,
            expert_layer_period=2, expert_layer_offset=0, mamba_d_state=5, mamba_d_conv=3, mamba_expand=1, mamba_proj_bias=True,
            mamba_conv_bias=False, tie_word_embeddings=True),
    }


CONVOLUTION = ((r"conv\.conv\.weight$", lambda normal: 0.7 * normal), (r"expert_bias$", lambda normal: 0.2 * normal))


def lfm2():
    published, saved = scans("Lfm2", CONVOLUTION)

    def first(config, tensors):
        config, tensors = four(config, tensors)
        config["block_ff_dim"] = config.pop("intermediate_size")
        config["tie_embedding"] = config.pop("tie_word_embeddings")
        kinds = config.pop("layer_types")
        return dict(config, full_attn_idxs=[i for i, kind in enumerate(kinds) if kind == "full_attention"]), tensors

    return {
        "lfm2-published": published(
            change("norm_eps", to=0.5), change("rope_theta", to=1e2), style=first, layer_types=["conv", "full_attention"],
            intermediate_size=96, block_multiple_of=32, tie_word_embeddings=True, **rope(1e6)),
        "lfm2-saved": saved(
            change("norm_eps", to=0.5), layer_types=["full_attention", "conv", "conv"], conv_bias=True, conv_L_cache=4,
            block_auto_adjust_ff_dim=False, tie_word_embeddings=False, **rope(1e4)),
    }


def lfm2_moe():
    published, saved = scans("Lfm2Moe", CONVOLUTION)

    def letters(config, tensors):
        config, tensors = moe.four(config, tensors)
        tensors = checkpoint.apart(tensors, r"feed_forward\.experts")
        return config, checkpoint.rename(
            tensors, (r"(experts\.\d+\.)gate_proj", r"\1w1"), (r"(experts\.\d+\.)up_proj", r"\1w3"),
            (r"(experts\.\d+\.)down_proj", r"\1w2"))

    return {
        "lfm2_moe-published": published(
            change("num_experts_per_tok", to=1), change("routed_scaling_factor", to=2.0), style=letters, num_experts=4,
            num_experts_per_tok=2, num_dense_layers=1, moe_intermediate_size=64, layer_types=["conv", "full_attention"],
            routed_scaling_factor=1.3, tie_word_embeddings=True, **rope(1e6)),
        "lfm2_moe-saved": saved(
            change("norm_topk_prob", to=True), num_experts=6, num_experts_per_tok=3, num_dense_layers=1, moe_intermediate_size=24,
            layer_types=["full_attention", "conv", "conv"], conv_bias=True, conv_L_cache=4, norm_topk_prob=False,
            use_expert_bias=False, tie_word_embeddings=False, **rope(1e4)),
    }


def lfm3():
    published, saved = scans("Lfm3", CONVOLUTION)
    ropes = {"sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
             "full_attention": {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.5}}

    def release(config, tensors):
        """Stores a checkpoint as LFM3 is released: ropes by the type of a layer, and the first keys for types."""
        config = dict(config, torch_dtype=config.pop("dtype"), transformers_version="5.23.0")
        return config, tensors

    def layers(*kinds):
        return {"layer_types": [{"c": "conv", "f": "full_attention", "s": "sliding_attention"}[k] for k in kinds],
                "num_hidden_layers": len(kinds)}

    return {
        "lfm3-published": published(
            change("norm_eps", to=0.5), change("sliding_window", to=14), change("use_attention_gate", to=False),
            change("use_sandwich_norm", to=False), change("rope_parameters", "full_attention", "rope_theta", to=1e2),
            change("rope_parameters", "full_attention", "partial_rotary_factor", to=1.0), style=release, head_dim=16,
            sliding_window=9, tie_word_embeddings=True, rope_parameters=ropes, **layers(*"ccfcs")),
        "lfm3-saved": saved(
            change("sliding_window", to=14), change("rope_parameters", "sliding_attention", "rope_theta", to=1e2), head_dim=8,
            sliding_window=9, conv_bias=True, conv_L_cache=4, use_sandwich_norm=False, attention_bias=True,
            tie_word_embeddings=False, rope_parameters=ropes, **layers(*"scsf")),
        "lfm3-ungated": saved(
            change("norm_eps", to=0.5), head_dim=8, sliding_window=9, conv_L_cache=3, use_attention_gate=False,
            tie_word_embeddings=False, rope_parameters=ropes, **layers(*"csf")),
    }


VARIANTS = {**mamba(), **jamba(), **lfm2(), **lfm2_moe(), **lfm3(), **mamba2(), **bamba(), **granitemoehybrid(), **falcon_h1(), **nemotron_h()}

if __name__ == "__main__":
    tiny.main(VARIANTS)
