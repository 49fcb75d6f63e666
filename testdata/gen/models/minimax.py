"""Reads MiniMax-Text-01 as published: with keys that transformers does not read, without decays, which it stores, and with
a rope of a part of each head, where transformers rotates all of it (https://github.com/huggingface/transformers/issues/48241
is the same of MiniMax-M2)."""

import json
import re

import torch
import transformers
from safetensors.torch import load_file
from transformers.models.minimax import modeling_minimax

import checkpoint

# Tensors that follow from the number of heads and layers.
DECAYS = r"self_attn\.(slope_rate|query_decay|key_decay|diagonal_decay)$"
# Prefixes of the factors of the residual stream, here and as published.
FACTORS = (("full_attn", "full_attention"), ("linear_attn", "linear_attention"), ("mlp", "mlp"))


rotate_all = modeling_minimax.apply_rotary_pos_emb


def rotate(q, k, cos, sin):
    """Rotates the first channels of each head, as many as there are cosines."""
    n = cos.shape[-1]
    rotated = rotate_all(q[..., :n], k[..., :n], cos, sin)
    return tuple(torch.cat([part, x[..., n:]], dim=-1) for part, x in zip(rotated, (q, k)))


modeling_minimax.apply_rotary_pos_emb = rotate


def partial(model, channels):
    """Returns a model that rotates so many channels of each head."""
    theta = model.config.rope_parameters["rope_theta"]
    model.model.rotary_emb.inv_freq = theta ** (-torch.arange(0, channels, 2).float() / channels)
    return model


def to_published(config, tensors):
    """Stores a checkpoint as it is published. config has the keys of transformers 4."""
    config["attn_type_list"] = [int(kind == "full_attention") for kind in config.pop("layer_types")]
    config.update(
        architectures=["MiniMaxText01ForCausalLM"], model_type="minimax_text_01", postnorm=True, shared_intermediate_size=0,
        rotary_dim=config["head_dim"] // 2)
    for name, published in FACTORS:
        for factor in ("alpha", "beta"):
            config[f"layernorm_{published}_{factor}"] = config.pop(f"{name}_{factor}_factor")
    return config, checkpoint.rename(tensors, (DECAYS, None))


def is_published(folder):
    return "attn_type_list" in json.loads((folder / "config.json").read_text(encoding="utf-8"))


def from_published(folder, plain):
    """Writes the model of a published folder as transformers reads it. Returns the number of channels that are rotated."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config.update(architectures=["MiniMaxForCausalLM"], model_type="minimax")
    config["layer_types"] = [("linear_attention", "full_attention")[kind] for kind in config.pop("attn_type_list")]
    for name, published in FACTORS:
        for factor in ("alpha", "beta"):
            config[f"{name}_{factor}_factor"] = config.pop(f"layernorm_{published}_{factor}")
    config["rope_parameters"] = {"rope_type": "default", "rope_theta": config.pop("rope_theta")}
    config.pop("rope_scaling")
    channels = config.pop("rotary_dim")
    tensors = load_file(folder / "model.safetensors")
    made = transformers.MiniMaxForCausalLM(transformers.MiniMaxConfig(**{k: v for k, v in config.items() if k != "torch_dtype"}))
    tensors.update({n: t for n, t in made.state_dict().items() if re.search(DECAYS, n)})
    checkpoint.write_json(plain / "config.json", config)
    checkpoint.store({n: t.contiguous() for n, t in tensors.items()}, plain / "model.safetensors")
    return channels
