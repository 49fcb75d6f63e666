"""Compares the logits of pairs of checkpoint folders in mlx-lm: one quantized, one with the same weights in float32.
Everything is computed in float32, so they differ only by rounding.

Usage: mlx_scores.py [--fails TEXT] PACKED PLAIN [[--fails TEXT] PACKED PLAIN]...

With --fails, mlx-lm must fail to load the next pair, with an error that contains the text.
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


def compare(packed_folder, plain_folder):
    (got, packed), (want, plain) = logits(packed_folder), logits(plain_folder)
    if not packed or plain:
        raise ValueError(f"{packed} layers are quantized, and {plain} in {plain_folder}")
    off = float(mx.abs(got - want).max() / mx.std(want))
    if not off < TOLERANCE:
        raise ValueError(f"logits differ by {off:.1e} standard deviations")
    return f"equal to {off:.1e} standard deviations, {packed} quantized layers"


def main():
    mx.set_default_device(mx.cpu)
    failed, rest = False, sys.argv[1:]
    while rest:
        reason, rest = (rest[1], rest[2:]) if rest[0] == "--fails" else (None, rest)
        pair, rest = rest[:2], rest[2:]
        try:
            print(f"{pair[0]}: {compare(*pair)}", flush=True)
            failed = failed or reason is not None
        except Exception as e:  # of any kind: a folder that mlx-lm does not load
            failed = failed or reason is None or reason not in str(e)
            print(f"{pair[0]}: {type(e).__name__}: {e}", flush=True)
    sys.exit(failed)


main()
