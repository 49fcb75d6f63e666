"""Loads two checkpoint folders with mlx-lm, one quantized and one of the same weights in float32, and compares their logits: all is
computed in float32, so they differ by rounding only.

Usage: mlx_scores.py PACKED PLAIN
"""

import json
import sys
from pathlib import Path

import mlx.core as mx
from mlx_lm.utils import load_model

AGREEMENT = 1e-3  # in deviations of the logits


def scores(folder):
    config = json.loads((Path(folder) / "config.json").read_text())
    vocabulary = config.get("text_config", config)["vocab_size"]
    # mlx-lm has it from the top of a Gemma's configuration, where published ones need not say it.
    model, _ = load_model(Path(folder), model_config={"vocab_size": vocabulary})
    model.apply(lambda a: a.astype(mx.float32) if mx.issubdtype(a.dtype, mx.floating) else a)
    packed = sum(hasattr(m, "bits") for _, m in model.named_modules())
    tokens = mx.arange(24)[None] * 7 % vocabulary
    return model(tokens)[0], packed


def main():
    mx.set_default_device(mx.cpu)
    (got, packed), (want, plain) = scores(sys.argv[1]), scores(sys.argv[2])
    if not packed or plain:
        sys.exit(f"{packed} layers are packed in {sys.argv[1]}, {plain} in {sys.argv[2]}")
    off = float(mx.abs(got - want).max() / mx.std(want))
    if not off < AGREEMENT:
        sys.exit(f"logits differ by {off:.1e} deviations")
    print(f"equal to {off:.1e} deviations, {packed} layers packed")


main()
