"""What the scripts of tiny checkpoints share: they write testdata/models/NAME with random weights, and their goldens.

There is a checkpoint for each thing that a loader can get wrong. It lists changes to its config.json that must change
the logits, so that a loader that ignores such a key fails. Weights are seeded by the names of checkpoint and tensor,
keep activations near 1 (see draw), and are rounded to the stored type. A seed whose golden would be a poor test is
skipped.
"""

import copy
import json
import re
import shutil
import sys
import tempfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import reference  # first: keeps transformers offline

import numpy as np
import torch
from safetensors.torch import load_file

import checkpoint

MODELS = Path(__file__).resolve().parents[2] / "models"
VOCAB = 384
LIMIT = 400 * 1024
# A rule of draw: norms that scale by 1 + w.
AROUND_ZERO = lambda normal: -0.1 + 0.15 * normal


def draw(seed, name, shape, tied, rules=()):
    """Returns a random weight in float32. RandomState's stream is frozen (NEP 19), so it is the same everywhere.

    rules are pairs (pattern of names, function of standard normal numbers) that take precedence.
    """
    normal = np.random.RandomState(zlib.crc32(f"{seed}/{name}".encode())).standard_normal(shape)
    rule = next((r for pattern, r in rules if re.search(pattern, name)), None)
    if rule is not None:
        value = rule(normal)
    elif name.endswith("norm.weight"):
        value = 0.9 + 0.15 * normal
    elif name.endswith(".bias"):
        value = 0.15 * normal
    elif name.endswith("embed_tokens.weight"):
        # With a tied head and larger embeddings the next token is always the last one.
        value = (0.12 if tied else 0.5) * normal
    else:
        value = 1.2 / np.sqrt(shape[-1]) * normal
    return torch.tensor(value, dtype=torch.float32)


@dataclass
class Variant:
    """A checkpoint: the model, its stored form, and the keys that must matter."""

    make: Callable  # () -> a model of transformers
    style: Callable = lambda config, tensors: (config, tensors)  # the saved config and tensors -> the stored ones
    rules: tuple = ()  # of draw
    matters: list = field(default_factory=list)  # changes of the stored config.json that must change the logits
    exact: tuple = ()  # patterns of tensors that stay in float32
    computed: tuple = ()  # patterns of tensors that the model computes
    limit: int = LIMIT
    firm: bool = False  # the choice of experts must not depend on where bf16 is rounded


def random_weights(model, seed, variant):
    """Sets the weights of a model: drawn, and rounded to bf16 except the exact ones. Integers stay."""
    tied = model.config.get_text_config().tie_word_embeddings
    drawn = {}
    for name, old in model.state_dict(keep_vars=True).items():
        if any(re.search(p, name) for p in variant.computed):
            continue
        if id(old) not in drawn and old.is_floating_point():  # a tied head is the embedding
            new = draw(seed, name, tuple(old.shape), tied, variant.rules)
            if not any(re.search(p, name) for p in variant.exact):
                new = new.to(torch.bfloat16).float()
            old.data.copy_(new)
            drawn[id(old)] = name
    return model.float().eval()


def saved(model, variant):
    """Returns config.json and tensors as transformers saves them, in bf16 except the exact ones."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
        tensors = {}
        for path in Path(folder).glob("model*.safetensors"):
            tensors.update(load_file(path))

    def retype(value):
        return {k: retype(v) if isinstance(v, dict) else "bfloat16" if k == "dtype" and v else v for k, v in value.items()}

    exact = lambda name: any(re.search(p, name) for p in variant.exact)
    return retype(config), {n: t if exact(n) or not t.is_floating_point() else t.to(torch.bfloat16) for n, t in tensors.items()}


def write(folder, config, tensors):
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint.write_json(folder / "config.json", config)
    checkpoint.store({n: t.contiguous().clone() for n, t in tensors.items()}, folder / "model.safetensors")


def judge(golden):
    """Raises Unsuitable if a wrong model could also have this golden."""
    logits, greedy = golden["logits"], golden["greedy"]
    same, std = int((logits.argmax(-1) == golden["tokens"]).sum()), float(logits.std())
    if same > 3:
        raise reference.Unsuitable(f"the next token is the last one at {same} of {len(logits)} positions")
    if not 0.5 < std < 3:
        raise reference.Unsuitable(f"logits have deviation {std:.2f}")
    if len(set(greedy.tolist())) < 4:
        raise reference.Unsuitable(f"greedy text is {greedy}")


def differs(folder, config, golden):
    """Returns by how many deviations another config.json changes the logits of the same weights."""
    with tempfile.TemporaryDirectory() as other:
        shutil.copytree(folder, other, dirs_exist_ok=True)
        checkpoint.write_json(Path(other) / "config.json", config)
        logits = reference.logits_of(reference.load(Path(other), strict=False), golden["tokens"])
    return float(np.abs(logits - golden["logits"]).max() / golden["logits"].std())


def check_matters(name, folder, stored, matters, golden):
    for i, change in enumerate(matters):
        off = differs(folder, change(copy.deepcopy(stored)), golden)
        assert off > 0.03, f"{name}: change {i} of config.json moves the logits by only {off:.1e} deviations"


def seeds(name, attempt):
    """Calls attempt with one seed after the other until it finds none Unsuitable."""
    for seed in range(20):
        try:
            return attempt(f"{name}.{seed}")
        except reference.Unsuitable as error:
            print(f"seed {seed} will not do: {error}")
    raise SystemExit(f"{name}: no seed of twenty will do")


def make(name, variant):
    """Writes a checkpoint and its golden."""

    def attempt(seed):
        folder = MODELS / name
        shutil.rmtree(folder, ignore_errors=True)
        model = random_weights(variant.make(), seed, variant)
        stored, tensors = variant.style(*saved(model, variant))
        write(folder, stored, tensors)
        golden = reference.write(folder)
        # transformers must load the same model from the folder, or its stored form is wrong.
        off = float(np.abs(reference.logits_of(model, golden["tokens"]) - golden["logits"]).max() / golden["logits"].std())
        assert off < reference.AGREEMENT, f"{name}: the stored model is {off:.1e} deviations off the one that was made"
        judge(golden)
        if variant.firm:
            reference.firm(folder, golden["tokens"], golden["logits"])
        size = sum(p.stat().st_size for p in folder.glob("model*.safetensors"))
        assert size <= variant.limit, f"{name}: {size} bytes of weights"
        check_matters(name, folder, stored, variant.matters, golden)
        return golden

    return seeds(name, attempt)


def change(*path, to):
    """Returns a change of config.json: it sets the value at path, or deletes the key if to is None."""

    def apply(config):
        at = config
        for key in path[:-1]:
            at = at[key]
        assert path[-1] in at or to is not None, f"config.json has no {'.'.join(path)}"
        if to is None:
            del at[path[-1]]
        else:
            assert at.get(path[-1]) != to, f"{'.'.join(path)} is {to} already"
            at[path[-1]] = to
        return config

    return apply


def main(variants):
    """Writes the checkpoints that the command line names, or all."""
    reference.setup()
    chosen = sys.argv[1:] or list(variants)
    for name in chosen:
        make(name, variants[name])
