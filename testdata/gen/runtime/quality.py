"""Writes runtime/quality/testdata/demo.json: perplexities and divergences of the demo model's logits and of the
same logits rounded to quarters, computed with numpy in float64 from testdata/reference/demo.safetensors.
"""

import json
import os

import numpy as np
from safetensors.numpy import load_file

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))


def log_softmax(x):
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def estimate(values):
    return {"value": values.mean(), "standard_error": values.std(ddof=1) / np.sqrt(len(values))}


def perplexity(losses):
    e = estimate(losses)
    return {"value": np.exp(e["value"]), "standard_error": np.exp(e["value"]) * e["standard_error"]}


def quantile_error(values, q):
    away = np.sqrt(q * (1 - q) / len(values))
    return (np.quantile(values, min(q + away, 1)) - np.quantile(values, max(q - away, 0))) / 2


def main():
    golden = load_file(os.path.join(ROOT, "testdata", "reference", "demo.safetensors"))
    scores, following = golden["logits"][:-1].astype(np.float64), golden["tokens"][1:]
    base, other = log_softmax(scores), log_softmax(np.round(scores * 4) / 4)
    at = np.arange(len(following))
    losses = [-x[at, following] for x in (base, other)]
    kl = (np.exp(base) * (base - other)).sum(axis=-1)
    found = {
        "tokens": len(following),
        "base_perplexity": perplexity(losses[0]), "perplexity": perplexity(losses[1]), "perplexity_ratio": perplexity(losses[1] - losses[0]),
        "mean_kl": estimate(kl), "median_kl": np.quantile(kl, 0.5), "kl_99": np.quantile(kl, 0.99), "max_kl": kl.max(),
        "median_kl_standard_error": quantile_error(kl, 0.5), "kl_99_standard_error": quantile_error(kl, 0.99),
        "top1": estimate((base.argmax(axis=-1) == other.argmax(axis=-1)).astype(np.float64)),
        "flips": estimate(((base.argmax(axis=-1) == following) != (other.argmax(axis=-1) == following)).astype(np.float64)),
    }
    path = os.path.join(ROOT, "runtime", "quality", "testdata", "demo.json")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        json.dump(found, f, indent=1, default=float)
        f.write("\n")


if __name__ == "__main__":
    main()
