"""Computes the goldens testdata/reference/NAME.safetensors of the checkpoints testdata/models/NAME.

Each holds tokens int32 [T], logits float32 [T, V] and greedy int32 [16], the plain argmax continuation of tokens (the
end token does not stop it). transformers computes them in float32 from the stored weights; llama_float64.py must agree.
Without --check the files are written; with it they are computed again and compared with what is there.
"""

import argparse
import os
import sys
import zlib
from pathlib import Path

os.environ["TRANSFORMERS_OFFLINE"] = "1"

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM
from transformers.utils import logging

import llama_float64
import story

TESTDATA = Path(__file__).resolve().parent.parent
LENGTH, STORY_LENGTH, GREEDY = 48, 64, 16
# In units of the logits' standard deviation. The project's own bound is 2e-3 for a logit, so twice that for a margin.
AGREEMENT, MARGIN = 1e-4, 5e-3


class Unsuitable(Exception):
    """The weights are right but make a poor test."""


def tokens_for(folder):
    """The demo reads the beginning of a story that it was not trained on, the others random tokens."""
    if folder.name == "demo":
        tok = Tokenizer.from_file(str(folder / "tokenizer.json"))
        return np.array(tok.encode(story.stories(seed=3, n=1)[0]).ids[:STORY_LENGTH], np.int32)
    config, _ = llama_float64.load(folder)
    rng = np.random.RandomState(zlib.crc32(folder.name.encode()))
    return rng.randint(0, config["vocab_size"], LENGTH).astype(np.int32)


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


@torch.no_grad()
def logits_of(model, tokens):
    return model(torch.tensor(np.asarray(tokens)[None].astype(np.int64)), use_cache=False).logits[0].numpy()


def margin(row):
    """How far the first is ahead of the second."""
    second, first = np.partition(row, -2)[-2:]
    return first - second


def compute(folder):
    """The golden of one checkpoint. Unsuitable: rounding alone could change its greedy tokens."""
    model, tokens = load(folder), tokens_for(folder)
    logits = logits_of(model, tokens)
    greedy, closest = list(tokens), np.inf
    for _ in range(GREEDY):
        row = logits_of(model, greedy)[-1]
        closest = min(closest, margin(row))
        greedy.append(int(row.argmax()))

    config, weights = llama_float64.load(folder)
    std = float(logits.std())
    off = float(np.abs(llama_float64.forward(config, weights, tokens) - logits).max()) / std
    again = llama_float64.forward(config, weights, greedy)[len(tokens) - 1 : -1].argmax(-1)
    assert off < AGREEMENT, f"{folder.name}: float64 is {off:.1e} deviations off"
    assert list(again) == greedy[len(tokens) :], f"{folder.name}: float64 continues differently"
    if closest < MARGIN * std:
        raise Unsuitable(f"a greedy token is ahead by only {closest / std:.1e} deviations")
    print(f"{folder.name}: deviation {std:.2f}, float64 off by {off:.1e}, smallest greedy margin {closest / std:.1e}"
          " (in deviations)")
    return {"tokens": tokens, "logits": logits.astype(np.float32),
            "greedy": np.array(greedy[len(tokens) :], np.int32)}


def path_of(folder):
    return TESTDATA / "reference" / f"{folder.name}.safetensors"


def write(folder):
    golden = compute(folder)
    path_of(folder).parent.mkdir(exist_ok=True)
    save_file(golden, path_of(folder))
    path_of(folder).chmod(0o644)
    return golden


def check(folder):
    """Whether the stored golden is what one gets today."""
    old, new = load_file(path_of(folder)), compute(folder)
    off = float(np.abs(old["logits"] - new["logits"]).max() / new["logits"].std())
    same = all(np.array_equal(old[k], new[k]) for k in ("tokens", "greedy"))
    if not same or off > AGREEMENT:
        print(f"{folder.name}: differs: logits by {off:.1e} deviations, tokens {'equal' if same else 'not equal'}")
        return False
    return True


def folders():
    return sorted(p.parent for p in (TESTDATA / "models").glob("*/config.json")
                  if p.parent.name == "demo" or p.parent.name.startswith("llama-"))


def setup():
    """One thread (the models are tiny), deterministic operations, and no noise on the terminal."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    logging.set_verbosity_error()
    logging.disable_progress_bar()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the stored goldens, write nothing")
    parser.add_argument("names", nargs="*", help="checkpoints, default all")
    args = parser.parse_args()
    setup()
    chosen = [f for f in folders() if not args.names or f.name in args.names]
    if args.check:
        sys.exit(0 if all([check(f) for f in chosen]) else 1)
    for folder in chosen:
        write(folder)


if __name__ == "__main__":
    main()
