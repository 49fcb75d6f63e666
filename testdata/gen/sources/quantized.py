"""What the scripts of quantized checkpoints share: they write testdata/sources/NAME from a checkpoint of
testdata/models.

A folder has a checkpoint as its publisher writes it, and reference.safetensors: tokens, and the logits that
transformers computes in float32 from the dequantized weights.
"""

import json
import sys
import tempfile
import zlib
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "models"))
import reference  # first: keeps transformers offline

import numpy as np
import torch
from safetensors.numpy import save_file
from safetensors.torch import load_file

import checkpoint

TESTDATA = Path(__file__).resolve().parents[2]
SOURCES, MODELS = TESTDATA / "sources", TESTDATA / "models"
LENGTH = 32
KEYS = ("quantization", "quantization_config", "compression_config")


def plain(name):
    """Returns config.json and tensors of a checkpoint of testdata/models."""
    folder = MODELS / name
    tensors = {}
    for path in sorted(folder.glob("model*.safetensors")):
        tensors.update(load_file(path))
    return json.loads((folder / "config.json").read_text(encoding="utf-8")), tensors


def without(config):
    """Returns config.json of the same model, not quantized."""
    return {k: without(v) if k == "text_config" else v for k, v in config.items() if k not in KEYS}


def golden(folder, config, tensors):
    """Writes the reference of a folder from its dequantized weights."""
    with tempfile.TemporaryDirectory() as dense:
        dense = Path(dense)
        checkpoint.write_json(dense / "config.json", without(config))
        checkpoint.store({n: t.float().contiguous().clone() if t.is_floating_point() else t for n, t in tensors.items()},
                         dense / "model.safetensors")
        model = reference.load(dense)
        rng = np.random.RandomState(zlib.crc32(folder.name.encode()))
        tokens = rng.randint(0, config.get("text_config", config)["vocab_size"], LENGTH).astype(np.int32)
        logits = reference.logits_of(model, tokens).astype(np.float32)
    save_file({"tokens": tokens, "logits": logits}, folder / "reference.safetensors")
    (folder / "reference.safetensors").chmod(0o644)
    print(f"{folder.name}: deviation {logits.std():.2f}, {sum(p.stat().st_size for p in folder.iterdir()) >> 10} KiB")


def main(makers):
    """Writes the folders that the command line names, or all. A maker takes the folder."""
    reference.setup()
    for name in sys.argv[1:] or list(makers):
        folder = SOURCES / name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        makers[name](folder)
