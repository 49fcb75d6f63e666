"""Models that transformers lacks, computed by mlx-lm on a CPU, in the form in which reference.py uses a model."""

import importlib
import json
from types import SimpleNamespace

import mlx.core as mx
import numpy as np
import torch
from safetensors.torch import load_file

mx.set_default_device(mx.cpu)

TYPES = ("rwkv7",)


class Model:
    """A model of mlx-lm whose parameters are tensors of torch."""

    def __init__(self, config, tensors, dtype=torch.float32):
        kind = importlib.import_module(f"mlx_lm.models.{config['model_type']}")
        if "intermediate_size" not in config:
            config = {**config, "intermediate_size": (int(config["hidden_ratio"] * config["hidden_size"]) + 31) // 32 * 32}
        self.values, self.tensors, self.dtype = config, tensors, dtype
        self.config = SimpleNamespace(model_type=config["model_type"], num_hidden_layers=config["num_hidden_layers"])
        self.model = SimpleNamespace(config=self.config)
        self.made = kind.Model(kind.ModelArgs.from_dict(config))

    def named_parameters(self):
        return self.tensors.items()

    def to(self, dtype):
        return Model(self.values, self.tensors, dtype)

    def __call__(self, ids, use_cache=False):
        """Returns the logits of tokens [1, T]."""
        assert not use_cache
        to = {torch.float32: mx.float32, torch.bfloat16: mx.bfloat16}[self.dtype]
        weights = {n: mx.array(t.float().numpy()).astype(to) for n, t in self.tensors.items()}
        shapes = {n: v.shape for n, v in flat(self.made.parameters())}
        assert set(shapes) == set(weights), f"other tensors: {sorted(set(shapes) ^ set(weights))}"
        self.made.load_weights([(n, w.reshape(shapes[n])) for n, w in weights.items()])
        logits = self.made(mx.array(ids.numpy())).astype(mx.float32)
        return SimpleNamespace(logits=torch.tensor(np.array(logits)))


def flat(tree):
    from mlx.utils import tree_flatten

    return tree_flatten(tree)


BLENDS = "rwkvag"  # the order of the six in one tensor


def to_first(tensors):
    """Returns RWKV 7 in the layout of its first files: one tensor of the six blends, and unused weights in the first layer."""
    out = {n: t for n, t in tensors.items() if ".attn.x_" not in n}
    for name in tensors:
        if name.endswith(".attn.x_r"):
            out[name[:-1] + "x"] = torch.stack([tensors[name[:-1] + b].flatten() for b in BLENDS])
    return out | {n.replace("layers.1.", "layers.0."): -t for n, t in tensors.items() if "layers.1.attn.v_lora" in n}


def from_first(tensors):
    out = {n: t for n, t in tensors.items() if not n.endswith(".attn.x_x") and "layers.0.attn.v_lora" not in n}
    for name in tensors:
        if name.endswith(".attn.x_x"):
            out.update({name[:-1] + b: t for b, t in zip(BLENDS, tensors[name])})
    return out


def load(folder, strict=True):
    """Loads a folder in float32. Tensors that the model does not have are ignored unless strict."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    tensors = from_first({n: t.float() for n, t in load_file(folder / "model.safetensors").items()})
    made = Model(config, tensors)
    known = {n for n, _ in flat(made.made.parameters())}
    assert not strict or set(tensors) == known, f"{folder.name}: {sorted(set(tensors) ^ known)}"
    made.tensors = {n: t for n, t in tensors.items() if n in known}
    return made
