"""mlx-lm's side of the quality benchmark.

    mlxlm.py base TEXT.json MODEL LOGITS       float32 logits of the unquantized model
    mlxlm.py compare TEXT.json LOGITS MODEL    prints a line of JSON

Quantized matrices are dequantized and multiplied in float32: mlx's own products of quantized matrices take minutes for
each text on a processor, and compute the same but for rounding.
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


def plain(module):
    """A module with float32 weights in place of a quantized one."""
    if not isinstance(module, (nn.QuantizedLinear, nn.QuantizedEmbedding)):
        return module
    wide = mx.dequantize(module.weight, module.scales, module.get("biases"), module.group_size, module.bits, module.mode, dtype=mx.float32)
    if isinstance(module, nn.QuantizedEmbedding):
        new = nn.Embedding(1, 1)
    else:
        new = nn.Linear(1, 1, bias="bias" in module)
        if "bias" in module:
            new.bias = module.bias
    new.weight = wide
    return new


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
