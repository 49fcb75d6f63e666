"""What the scripts of mixtures of experts share: sizes, and the stored forms of a configuration."""

import numpy as np
import torch

import checkpoint
import dense
import tiny

# Correction biases of routers and attention sinks start at zero: random ones show that they are used.
RULES = (
    (r"correction_bias$|expert_bias$", lambda normal: 0.2 * normal),
    (r"sinks$|attention_sink_bias$", lambda normal: normal),
    (r"_proj_bias$", lambda normal: 0.15 * normal),
    (r"layernorm\.weight$|norm\.weight$", lambda normal: 0.9 + 0.15 * normal),
)
# The size of a checkpoint with a multi-token prediction head.
WITH_HEAD = 480 * 1024
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


def head(name, hidden, rules, **names):
    """Draws what a multi-token prediction head has beyond its layer: norms, and a projection that joins its inputs.

    names are those of the tensors "vector", "state", "norm" and "join".
    """
    shapes = {"vector": (hidden,), "state": (hidden,), "norm": (hidden,), "join": (hidden, 2 * hidden)}
    kinds = {"vector": "e.norm.weight", "state": "h.norm.weight", "norm": "shared_head.norm.weight", "join": "eh_proj.weight"}
    return {name + names[part] + ".weight": tiny.draw("next", kinds[part], shape, False, rules).to(torch.bfloat16)
            for part, shape in shapes.items()}


def flipped(tensors, last, more):
    """Returns the tensors of a layer under another name. All but the weights of norms have the other sign."""
    return {more + name.removeprefix(last): t if name.endswith("norm.weight") else -t
            for name, t in tensors.items() if name.startswith(last)}


def next_layer(config, tensors, rules=RULES):
    """Adds a multi-token prediction head after the last layer, with that layer's tensors."""
    last, more = (f"model.layers.{config['num_hidden_layers'] - i}." for i in (1, 0))
    return {**tensors, **flipped(tensors, last, more), **head(
        more, config["hidden_size"], rules, vector="enorm", state="hnorm", norm="shared_head.norm", join="eh_proj")}


def grouped(count):
    """Returns keys of a router with groups."""
    return {count: 8, "num_experts_per_tok": 3, "n_group": 4, "topk_group": 2, "norm_topk_prob": False,
            "routed_scaling_factor": 1.7}


# The magnitudes of E2M1, by code: https://www.opencomputeproject.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def groups(value):
    """Returns matrices [..., in, out] as rows [..., out, in / 32, 32], and the exponent of each group of 32."""
    rows = np.swapaxes(value, -1, -2)
    rows = rows.reshape(*rows.shape[:-1], -1, 32)
    return rows, np.floor(np.log2(np.abs(rows).max(-1, keepdims=True))) - 2


def mxfp4(normal):
    """Is a rule of tiny.draw: matrices [..., in, out] whose elements mxfp4 represents."""
    rows, exponent = groups(1.2 / np.sqrt(normal.shape[-2]) * normal)
    scaled = rows / 2.0**exponent
    scaled = np.sign(scaled) * E2M1[np.abs(np.abs(scaled)[..., None] - E2M1).argmin(-1)]
    return np.swapaxes((scaled * 2.0**exponent).reshape(*rows.shape[:-2], -1), -1, -2)


def to_mxfp4(tensor):
    """Returns the blocks and scales of matrices [..., in, out] that mxfp4 made, as OpenAI publishes them."""
    rows, exponent = groups(tensor.double().numpy())
    scaled = rows / 2.0**exponent
    codes = np.searchsorted(E2M1, np.abs(scaled)).astype(np.uint8)
    assert (E2M1[codes] == np.abs(scaled)).all()
    codes |= (scaled < 0).astype(np.uint8) << 3
    return torch.tensor(codes[..., ::2] | codes[..., 1::2] << 4), torch.tensor((exponent[..., 0] + 127).astype(np.uint8))
