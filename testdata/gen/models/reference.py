"""Computes the goldens testdata/reference/NAME.safetensors of the checkpoints testdata/models/NAME.

    reference.py [--check] [NAME...]

A golden has tokens int32 [T], logits float32 [T, V] and greedy int32 [16], the greedy continuation of tokens, which
the end token does not stop. For texts beyond a model's context (long-*) it also has steps, the logits of one token at
a time; there and in greedy cached keys keep their rotation.

transformers computes the goldens in float32 from the stored weights, or mlx-lm for models that it lacks. For Llama, llama_float64.py must agree. For
others, weights changed in their fifth digit must give nearly the same logits, so that rounding does not choose other
experts.
"""

import argparse
import json
import os
import sys
import tempfile
import zlib
from pathlib import Path

os.environ["TRANSFORMERS_OFFLINE"] = "1"

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer
from transformers.utils import logging

import checkpoint
import decilm
import llama_float64
import minimax
import next_mtp
import of_mlx
import qwen3_5_mtp
import remote
import story

TESTDATA = Path(__file__).resolve().parents[2]
LENGTH, STORY_LENGTH, GREEDY = 48, 64, 16
# In standard deviations of the logits. The tests' bound on a GPU is 2e-3 for a logit, hence twice that for a margin.
AGREEMENT, MARGIN = 1e-4, 5e-3
NUDGE, STEADY = 1e-5, 4e-3
# Mean KL divergence of transformers in bf16 from the golden; the tests' bound is 1e-2.
ROUGH = 3e-3
# Of models whose indexers choose positions, of which other ones are as good in bf16.
ROUGH_CHOICE = 3e-2
# Tensors that transformers does not load: MTP heads, which some models number as the layer after the last.
LEFT_OUT = ("mtp.", "model.mtp.")
# Checkpoints that are trained on stories.
TRAINED = ("demo", "gemma4-pair")


class Unsuitable(Exception):
    """The weights are valid but make a poor test."""


def tokens_for(folder):
    """Returns the text of a golden: of a trained model the beginning of a held-out story, of others random tokens."""
    if folder.name in TRAINED:
        tok = Tokenizer.from_file(str(folder / "tokenizer.json"))
        return np.array(tok.encode(story.stories(seed=3, n=1)[0]).ids[:STORY_LENGTH], np.int32)
    rng = np.random.RandomState(zlib.crc32(folder.name.encode()))
    return rng.randint(0, vocabulary(folder), LENGTH).astype(np.int32)


def config_of(folder):
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))


def vocabulary(folder):
    config = config_of(folder)
    config = config.get("text_config", config)
    return config.get("padded_vocab_size") or config["vocab_size"]


def load(folder, strict=True):
    """Loads the model that config.json names, in float32. The folder must have its tensors, and if strict no others."""
    if checkpoint.is_mlx(folder):
        with tempfile.TemporaryDirectory() as plain:
            checkpoint.from_mlx(folder, Path(plain))
            return load(Path(plain), strict)
    if minimax.is_published(folder):
        with tempfile.TemporaryDirectory() as plain:
            channels = minimax.from_published(folder, Path(plain))
            return minimax.partial(load(Path(plain), strict), channels)
    if checkpoint.lacks_unused(folder):
        with tempfile.TemporaryDirectory() as whole:
            checkpoint.add_unused(folder, Path(whole))
            return load(Path(whole), strict)
    if kind := remote.of(folder):
        with tempfile.TemporaryDirectory() as plain:
            kind.plain(folder, Path(plain))
            return kind.adapt(load(Path(plain), strict))
    if config_of(folder)["architectures"][0] in checkpoint.NESTED:
        with tempfile.TemporaryDirectory() as plain:
            checkpoint.text_alone(folder, Path(plain))
            return load(Path(plain), strict)
    if config_of(folder)["model_type"] in of_mlx.TYPES:
        return of_mlx.load(folder, strict)
    name = config_of(folder)["architectures"][0]
    kind = decilm.DeciLMForCausalLM if name == "DeciLMForCausalLM" else getattr(transformers, name)
    model, info = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    wrong = [*info["missing_keys"], *info["mismatched_keys"]]
    left_out = (*LEFT_OUT, f"model.layers.{model.config.get_text_config().num_hidden_layers}.")
    wrong += [n for n in info["unexpected_keys"] if strict and not n.startswith(left_out)]
    assert not wrong, f"{folder.name}: absent, of another shape, or not known: {wrong}"
    return model.eval()


@torch.no_grad()
def logits_of(model, tokens):
    return model(torch.tensor(np.asarray(tokens)[None].astype(np.int64)), use_cache=False).logits[0].float().numpy()


@torch.no_grad()
def step(model, tokens, cache):
    """Returns the logits of tokens that follow those in the cache."""
    return model(torch.tensor(np.asarray(tokens)[None].astype(np.int64)), past_key_values=cache, use_cache=True).logits[0].numpy()


def steps_of(model, tokens):
    """Returns the logits of one token at a time. Beyond the context the rope changes, but cached keys keep theirs."""
    cache = transformers.DynamicCache(config=model.config)
    return np.concatenate([step(model, [t], cache) for t in tokens]).astype(np.float32)


def margin(row):
    """Returns the distance between the two largest logits."""
    second, first = np.partition(row, -2)[-2:]
    return first - second


def compute(folder):
    """Computes the golden of a checkpoint. Raises Unsuitable if rounding could change its greedy tokens."""
    model, tokens = load(folder), tokens_for(folder)
    logits = logits_of(model, tokens)
    greedy, closest = list(tokens), np.inf
    long = folder.name.startswith("long-")
    cache = transformers.DynamicCache(config=model.config) if long else None
    for _ in range(GREEDY):
        # The cache changes the result for long texts only.
        row = (step(model, greedy[cache.get_seq_length() :], cache) if long else logits_of(model, greedy))[-1]
        closest = min(closest, margin(row))
        greedy.append(int(row.argmax()))

    std = float(logits.std())
    if is_llama(folder):
        second_opinion(folder, tokens, logits, greedy)
    else:
        steady(model, greedy)
        # A new model, since a dynamic rope keeps state of the longest text.
        rough(load(folder).to(torch.bfloat16), tokens, logits)
    golden = {"tokens": tokens, "logits": logits.astype(np.float32), "greedy": np.array(greedy[len(tokens) :], np.int32)}
    if long:
        golden["steps"] = steps_of(load(folder), tokens)
    golden |= qwen3_5_mtp.compute(folder, model, tokens, golden["greedy"]) | next_mtp.compute(folder, model, tokens, golden["greedy"])
    closest = min([closest, *(margin(row) for row in golden.get("mtp_steps", []))])
    if closest < MARGIN * std:
        raise Unsuitable(f"a greedy token is ahead by only {closest / std:.1e} deviations")
    print(f"{folder.name}: deviation {std:.2f}, smallest greedy margin {closest / std:.1e} of it")
    return golden


def is_llama(folder):
    return config_of(folder)["architectures"] == ["LlamaForCausalLM"]


def second_opinion(folder, tokens, logits, greedy):
    config, weights = llama_float64.load(folder)
    off = float(np.abs(llama_float64.forward(config, weights, tokens) - logits).max() / logits.std())
    again = llama_float64.forward(config, weights, greedy)[len(tokens) - 1 : -1].argmax(-1)
    assert off < AGREEMENT, f"{folder.name}: float64 is {off:.1e} deviations off"
    assert list(again) == greedy[len(tokens) :], f"{folder.name}: float64 continues differently"


@torch.no_grad()
def steady(model, tokens):
    """Raises Unsuitable if rounding could change the choice of an expert."""
    logits, kept = logits_of(model, tokens), {n: p.detach().clone() for n, p in model.named_parameters()}
    for seed in range(3):
        rng = torch.Generator().manual_seed(seed)
        for name, p in model.named_parameters():
            p.copy_(kept[name] * (1 + NUDGE * torch.randn(p.shape, generator=rng)))
        off = float(np.abs(logits_of(model, tokens) - logits).max() / logits.std())
        if off > STEADY:
            raise Unsuitable(f"weights moved by {NUDGE} move the logits by {off:.1e} deviations")
    for name, p in model.named_parameters():
        p.copy_(kept[name])


def rough(model, tokens, logits):
    """Raises Unsuitable if the logits in bf16 differ too much, because other experts are chosen."""
    text = model.config.get_text_config()
    limit = ROUGH_CHOICE if hasattr(text, "index_topk") or hasattr(text, "indexer_budget") else ROUGH
    want = torch.log_softmax(torch.tensor(logits).double(), -1)
    got = torch.log_softmax(torch.tensor(logits_of(model, tokens)).double(), -1)
    kl = float((want.exp() * (want - got)).sum(-1).mean())
    if kl > limit:
        raise Unsuitable(f"in bf16 the mean KL is {kl:.1e}")


def firm(folder, tokens, logits):
    """Raises Unsuitable if the choice of experts depends on where an implementation rounds to bf16."""
    for seed in range(4):
        model, rng = load(folder), torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for p in model.parameters():
                p.mul_(1 + 2**-9 * torch.randn(p.shape, generator=rng))
        rough(model.to(torch.bfloat16), tokens, logits)


def path_of(folder):
    return TESTDATA / "reference" / f"{folder.name}.safetensors"


def write(folder):
    golden = compute(folder)
    path_of(folder).parent.mkdir(exist_ok=True)
    save_file(golden, path_of(folder))
    path_of(folder).chmod(0o644)
    return golden


def check(folder):
    """Reports whether the stored golden equals a new one."""
    try:
        old, new = load_file(path_of(folder)), compute(folder)
    except Unsuitable as error:
        print(f"{folder.name}: {error}")
        return False
    off = float(np.abs(old["logits"] - new["logits"]).max() / new["logits"].std())
    same = all(np.array_equal(old[k], new[k]) for k in ("tokens", "greedy"))
    for name in sorted(set(old) - {"logits", "tokens", "greedy"}):
        off = max(off, float(np.abs(old[name] - new[name]).max() / np.abs(new[name]).mean()))
    if not same or off > AGREEMENT:
        print(f"{folder.name}: differs: by {off:.1e} deviations, tokens {'equal' if same else 'not equal'}")
        return False
    return True


def folders():
    """Returns the checkpoints with a golden of this kind. The scripts of assistants write theirs."""
    return sorted(p.parent for p in (TESTDATA / "models").glob("*/config.json") if "assistant" not in p.parent.name)


def setup():
    """Sets one thread (the models are tiny), deterministic operations, and no progress output."""
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
