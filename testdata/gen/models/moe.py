"""What the scripts of mixtures of experts share: sizes, and the stored forms of a configuration."""

import checkpoint
import dense

# Correction biases of routers and attention sinks start at zero: random ones show that they are used.
RULES = (
    (r"correction_bias$|expert_bias$", lambda normal: 0.2 * normal),
    (r"sinks$|attention_sink_bias$", lambda normal: normal),
    (r"_proj_bias$", lambda normal: 0.15 * normal),
    (r"layernorm\.weight$|norm\.weight$", lambda normal: 0.9 + 0.15 * normal),
)
EXACT = (r"correction_bias$", r"expert_bias$")


def family(name, rules=(), **common):
    """Is dense.family, with random corrections. Published files keep the key of the number of experts."""
    kind, saved = dense.family(name, rules=(*rules, *RULES), **common)

    def published(*matters, style=four, **more):
        return exact(kind(*matters, style=style, **more))

    return published, lambda *matters, **more: exact(saved(*matters, **more))


def exact(variant):
    variant.exact = EXACT
    return variant


def four(config, tensors):
    """Stores a checkpoint with the keys of transformers 4."""
    count = config.get("num_local_experts")
    config = checkpoint.four(config)
    if count:
        config.pop("num_experts")
        config["num_local_experts"] = count
    return config, tensors


def grouped(count):
    """Returns keys of a router with groups."""
    return {count: 8, "num_experts_per_tok": 3, "n_group": 4, "topk_group": 2, "norm_topk_prob": False,
            "routed_scaling_factor": 1.7}
