"""Measures mlx-lm once, on few tokens, since it is slow on a CPU: mlxlm.py FOLDER prints a line of JSON."""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import mlx.core as mx
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model

PREFILL, DECODE = 8, 3


def main(folder):
    model, _ = load_model(Path(folder))
    cache = make_prompt_cache(model)

    def take(tokens):
        begun = time.perf_counter()
        best = mx.argmax(model(tokens, cache=cache)[:, -1, :], axis=-1)
        mx.eval(best)
        return best, time.perf_counter() - begun

    best, prefill = take(mx.arange(300, 300 + PREFILL)[None])
    decode = 0.0
    for _ in range(DECODE):
        best, seconds = take(best[None])
        decode += seconds
    print(json.dumps({
        "version": version("mlx-lm"), "mlx": version("mlx"),
        "prefill": {"tokens": PREFILL, "seconds": prefill}, "decode": {"tokens": DECODE, "seconds": decode},
    }))


if __name__ == "__main__":
    main(sys.argv[1])
