"""Writes runtime/batch/testdata/embeddings.safetensors: transformers' last hidden states, pooled.

For some checkpoints of testdata/models and inputs 0 to 2 of different lengths it has MODEL/INPUT/tokens int32 [T] and,
for each pooling mode of sentence-transformers, MODEL/INPUT/MODE float32 [hidden], not normalized. --check compares.
"""

import argparse
import sys

import reference  # first: keeps transformers offline

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

MODELS = ["llama-default", "qwen3-saved", "gemma3-text-saved", "qwen3_5-default"]
LENGTHS = [1, 19, 48]
FILE = reference.TESTDATA.parent / "runtime" / "batch" / "testdata" / "embeddings.safetensors"


@torch.no_grad()
def hidden_states(model, tokens):
    """Returns the hidden states after the final norm, [T, hidden]."""
    body = model.get_decoder()
    return body(torch.tensor(tokens[None].astype(np.int64)), use_cache=False).last_hidden_state[0].double().numpy()


def pooled(x):
    places = np.arange(1, len(x) + 1)[:, None]
    return {
        "cls": x[0],
        "max": x.max(0),
        "mean": x.mean(0),
        "mean_sqrt_len_tokens": x.sum(0) / np.sqrt(len(x)),
        "weightedmean": (x * places).sum(0) / places.sum(),
        "lasttoken": x[-1],
    }


def compute():
    out = {}
    for name in MODELS:
        folder = reference.TESTDATA / "models" / name
        model, tokens = reference.load(folder), reference.tokens_for(folder)
        for i, length in enumerate(LENGTHS):
            part = tokens[-length:]
            out[f"{name}/{i}/tokens"] = part
            for mode, vector in pooled(hidden_states(model, part)).items():
                out[f"{name}/{i}/{mode}"] = vector.astype(np.float32)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with what is stored, write nothing")
    args = parser.parse_args()
    reference.setup()
    new = compute()
    if not args.check:
        FILE.parent.mkdir(exist_ok=True)
        save_file(new, FILE)
        FILE.chmod(0o644)
        return
    old = load_file(FILE)
    off = max(float(np.abs(old[k] - new[k]).max()) for k in new)
    print(f"largest difference {off:.1e}")
    sys.exit(0 if set(old) == set(new) and off < 1e-4 else 1)


if __name__ == "__main__":
    main()
