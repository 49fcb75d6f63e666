"""mlx-lm's side of the quality benchmark.

    mlxlm.py base TEXT.json MODEL LOGITS       float32 logits of the unquantized model
    mlxlm.py compare TEXT.json LOGITS MODEL    prints a line of JSON

Matrices are dequantized by mlx and multiplied in float32 by numpy: mlx's own products take minutes for each window on a
processor, and compute the same but for rounding.
"""

import json
import os
import sys
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_map_with_path
from mlx_lm.utils import load_model

import score


class Product(nn.Module):
    """A linear layer or an embedding, with float32 weights outside mlx."""

    def __init__(self, weight, bias=None):
        super().__init__()
        self.rows = np.array(weight.astype(mx.float32))
        self.bias = bias

    def as_linear(self, x):
        y = mx.array(np.array(x.astype(mx.float32)) @ self.rows.T)
        return y if self.bias is None else y + self.bias

    def __call__(self, x):
        return mx.array(self.rows[np.array(x)]) if mx.issubdtype(x.dtype, mx.integer) else self.as_linear(x)


def plain(module):
    """A module with float32 weights in place of a linear layer or an embedding."""
    if isinstance(module, (nn.QuantizedLinear, nn.QuantizedEmbedding)):
        wide = mx.dequantize(module.weight, module.scales, module.get("biases"), module.group_size, module.bits, module.mode, dtype=mx.float32)
        return Product(wide, module.get("bias"))
    if isinstance(module, (nn.Linear, nn.Embedding)):
        return Product(module.weight, module.get("bias"))
    return module


def logits_of(path):
    model, _ = load_model(Path(path))
    leaves = tree_map_with_path(lambda _, m: plain(m), model.leaf_modules(), is_leaf=nn.Module.is_module)
    model.update_modules(leaves)
    model.set_dtype(mx.float32)

    def logits(tokens, n):
        return np.array(model(mx.array(tokens)[None])[0, -n:].astype(mx.float32))

    return logits


def size(path):
    """Bytes of all tensors."""
    total = 0
    for file in Path(path).glob("*.safetensors"):
        total += sum(t.nbytes for t in mx.load(str(file)).values())
    return total


def read(path):
    with open(path) as f:
        return json.load(f)


if __name__ == "__main__":
    if sys.argv[1] == "base":
        _, _, text, model, path = sys.argv
        score.Judge(read(text), path).base(logits_of(model))
        os.rename(path + ".part", path)
    else:
        _, _, text, logits, model = sys.argv
        print(json.dumps({**score.Judge(read(text), logits).compare(logits_of(model)), "bytes": size(model)}))
