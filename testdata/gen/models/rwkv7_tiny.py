"""Writes the tiny checkpoints testdata/models/rwkv7-* with random weights, as published, and their goldens, by mlx-lm.

    rwkv7_tiny.py [NAME...]
"""

import shutil
import sys

import reference  # first: keeps transformers offline

import numpy as np
import torch

import of_mlx
import tiny
from tiny import change

PUBLISHED = {
    "architectures": ["RWKV7ForCausalLM"], "model_type": "rwkv7", "attn": None, "attn_mode": "chunk", "vocab_size": 128,
    "hidden_size": 64, "hidden_ratio": 4.0, "intermediate_size": 192, "num_hidden_layers": 2, "head_dim": 16, "num_heads": None,
    "a_low_rank_dim": 16, "v_low_rank_dim": 8, "gate_low_rank_dim": 32, "decay_low_rank_dim": 16, "hidden_act": "sqrelu",
    "norm_first": True, "norm_bias": True, "norm_eps": 4e-5, "fuse_norm": False, "max_position_embeddings": 128,
    "bos_token_id": 0, "eos_token_id": 0, "tie_word_embeddings": False, "value_dim": [64, 64], "torch_dtype": "bfloat16",
}

# The layout of the first files, with tied embeddings.
FIRST = {
    **{k: v for k, v in PUBLISHED.items() if k not in ("intermediate_size", "value_dim")}, "hidden_size": 48, "hidden_ratio": 3.9,
    "num_hidden_layers": 3, "head_dim": 8, "a_low_rank_dim": 6, "v_low_rank_dim": 4, "gate_low_rank_dim": 10,
    "decay_low_rank_dim": 5, "norm_eps": 8e-5, "tie_word_embeddings": True,
}

# What starts at zero or one. Decays are about 0.8, and half of a row's input is the row before.
RULES = (
    (r"\.x_\w$", lambda normal: 0.5 + 0.25 * normal),
    (r"\.k_k$", lambda normal: 0.85 + 0.2 * normal),
    (r"\.k_a$", lambda normal: 1 + 0.3 * normal),
    (r"\.r_k$", lambda normal: 0.3 * normal),
    (r"w_lora\.lora\.2\.bias$", lambda normal: -0.5 + normal),
    (r"_lora\.lora\.2\.bias$", lambda normal: 0.7 * normal),
    (r"norm\.weight$", lambda normal: 0.9 + 0.15 * normal),
    (r"embeddings\.weight$", lambda normal: 0.5 * normal),
)


def published(tensors):
    """Keys' scales and the norms of heads are vectors; the six blends have two more dimensions."""
    flat = lambda n: n.endswith((".k_k", ".k_a", ".g_norm.weight", ".g_norm.bias"))
    return {n: t.flatten() if flat(n) else t for n, t in tensors.items()}


# With a tied head and a larger part of the embeddings in the last row the next token is always the last one.
TIED = (
    (r"embeddings\.weight$", lambda normal: 0.12 * normal), (r"pre_norm\.weight$", lambda normal: 0.25 + 0.1 * normal), *RULES)

# The configuration, the stored form, rules, and changes of the configuration that must change the logits.
VARIANTS = {
    "rwkv7-published": (PUBLISHED, published, RULES, [change("norm_eps", to=0.5)]),
    "rwkv7-tied": (FIRST, lambda tensors: of_mlx.to_first(published(tensors)), TIED, [change("norm_eps", to=0.5)]),
}


def make(name, config, style, rules, matters):
    """Writes a checkpoint and its golden."""

    def attempt(seed):
        folder = tiny.MODELS / name
        shutil.rmtree(folder, ignore_errors=True)
        made, tensors = of_mlx.Model(config, {}), {}
        for key, like in of_mlx.flat(made.made.parameters()):
            tensors[key] = tiny.draw(seed, key, tuple(like.shape), False, rules).to(torch.bfloat16)
        tiny.write(folder, config, style(tensors))
        golden = reference.write(folder)
        made.tensors = tensors
        off = np.abs(reference.logits_of(made, golden["tokens"]) - golden["logits"]).max() / golden["logits"].std()
        assert off < reference.AGREEMENT, f"{name}: the stored model is {off:.1e} deviations off the one that was made"
        tiny.judge(golden)
        tiny.check_matters(name, folder, config, matters, golden)
        return golden

    return tiny.seeds(name, attempt)


if __name__ == "__main__":
    reference.setup()
    for name in sys.argv[1:] or VARIANTS:
        make(name, *VARIANTS[name])
