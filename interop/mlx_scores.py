"""Compares the logits of two checkpoint folders in mlx-lm: one quantized, and one with the same weights in float32.
Everything is computed in float32, so they differ only by rounding.

Usage: mlx_scores.py PACKED PLAIN
"""

import json
import sys
from pathlib import Path

import mlx.core as mx
from mlx_lm.utils import load_model

TOLERANCE = 1e-3  # in standard deviations of the logits


def logits(folder):
    config = json.loads((Path(folder) / "config.json").read_text())
    vocabulary = config.get("text_config", config)["vocab_size"]
    # mlx-lm reads it from the top level of a Gemma configuration, where published ones may omit it.
    model, _ = load_model(Path(folder), model_config={"vocab_size": vocabulary})
    model.apply(lambda a: a.astype(mx.float32) if mx.issubdtype(a.dtype, mx.floating) else a)
    packed = sum(hasattr(m, "bits") for _, m in model.named_modules())
    tokens = mx.arange(24)[None] * 7 % vocabulary
    return model(tokens)[0], packed


def main():
    mx.set_default_device(mx.cpu)
    (got, packed), (want, plain) = logits(sys.argv[1]), logits(sys.argv[2])
    if not packed or plain:
        sys.exit(f"{packed} layers are quantized in {sys.argv[1]}, {plain} in {sys.argv[2]}")
    off = float(mx.abs(got - want).max() / mx.std(want))
    if not off < TOLERANCE:
        sys.exit(f"logits differ by {off:.1e} standard deviations")
    print(f"equal to {off:.1e} standard deviations, {packed} quantized layers")


main()
