"""Writes the tiny Llama checkpoints testdata/models/llama-*, with random weights, and their goldens.

    llama_tiny.py [NAME...]
"""

import json
import shutil
import tempfile
from pathlib import Path

import reference  # first: keeps transformers offline

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import checkpoint
import story
import tiny
import train_demo
from tiny import LIMIT, MODELS, VOCAB

BASE = dict(
    vocab_size=VOCAB, hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=128, rms_norm_eps=1e-5, bos_token_id=VOCAB - 2,
    eos_token_id=VOCAB - 1, rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
)

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}


def scaled(theta=10000.0, **params):
    """Returns rope_parameters of a scaled rope."""
    return {"rope_parameters": {"rope_theta": theta, **params}}


def without(config, key):
    """Returns a change of config.json that deletes a key, at the top or in the rope."""
    value = {k: v for k, v in config.items() if k != key}
    for rope in ("rope_scaling", "rope_parameters"):
        if value.get(rope):
            value[rope] = {k: v for k, v in value[rope].items() if k != key}
    return value


def unscaled(config):
    """Removes the scaling of the rope from config.json."""
    if "rope_parameters" in config:
        return dict(config, rope_parameters={"rope_type": "default", "rope_theta": config["rope_parameters"]["rope_theta"]})
    return dict(config, rope_scaling=None)


def style_5(config, dtype):
    """Stores config.json as transformers 5 saves it: rope_parameters, dtype."""
    with tempfile.TemporaryDirectory() as folder:
        LlamaConfig(**config, dtype=dtype, architectures=["LlamaForCausalLM"]).save_pretrained(folder)
        return json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))


def style_first(config, dtype):
    """Stores config.json as the first Llamas had it, without keys that have a default."""
    value = checkpoint.published(config, dtype)
    for key in ("attention_bias", "attention_dropout", "mlp_bias", "num_key_value_heads", "rope_theta", "rope_scaling",
                "pretraining_tp", "tie_word_embeddings"):
        del value[key]
    return value


def style_type(config, dtype):
    """Stores config.json in its older form, whose rope_scaling has type for rope_type."""
    value = checkpoint.published(config, dtype)
    rope = dict(value["rope_scaling"])
    value["rope_scaling"] = {"type": rope.pop("rope_type"), **rope}
    return value


# name -> (keys beyond BASE, how it is stored, changes of config.json that must change the logits)
CHECKPOINTS = {
    "llama-default": (dict(rope_parameters={"rope_type": "default", "rope_theta": 500000.0}), {},
                      [lambda c: dict(c, rope_theta=10000.0), lambda c: dict(c, rms_norm_eps=1e-1)]),
    "llama-tied": (dict(tie_word_embeddings=True), {}, []),
    "llama-mha": (dict(num_key_value_heads=4), {"style": style_first}, []),
    "llama-head-dim": (dict(head_dim=24), {}, []),
    "llama-bias": (dict(attention_bias=True, mlp_bias=True), {},
                   [lambda c: dict(c, attention_bias=False), lambda c: dict(c, mlp_bias=False)]),
    "llama-sharded": ({}, {"shards": 3}, []),
    "llama-f16": ({}, {"dtype": "float16"}, []),
    "llama-f32": (dict(num_hidden_layers=2, tie_word_embeddings=True), {"dtype": "float32"}, []),
    "llama-rope-linear": (scaled(rope_type="linear", factor=4.0), {"style": style_type}, [unscaled]),
    "llama-rope-llama3": (scaled(20000.0, **LLAMA3), {},
                          [unscaled, lambda c: dict(c, rope_scaling=dict(c["rope_scaling"], high_freq_factor=1.5)),
                           lambda c: dict(c, rope_scaling=dict(c["rope_scaling"], low_freq_factor=0.2)),
                           lambda c: dict(c, rope_scaling=dict(c["rope_scaling"], original_max_position_embeddings=64))]),
    "llama-rope-parameters": (scaled(5000.0, **LLAMA3), {"style": style_5},
                              [unscaled, lambda c: without(c, "rope_theta")]),
    "llama-rope-yarn": (scaled(**YARN), {"style": style_type},
                        [unscaled, lambda c: dict(c, rope_scaling=dict(c["rope_scaling"], attention_factor=1.0))]),
    "llama-rope-yarn-mscale": (scaled(100.0, **YARN, beta_fast=1.5, beta_slow=0.5, mscale=1.5, mscale_all_dim=0.5), {},
                               [unscaled] + [lambda c, k=k: without(c, k)
                                             for k in ("beta_fast", "beta_slow", "mscale", "mscale_all_dim")]),
    "llama-rope-yarn-factor": (scaled(100.0, **YARN, attention_factor=1.5, beta_fast=2.0, truncate=False),
                               {"style": style_5},
                               [unscaled] + [lambda c, k=k: without(c, k)
                                             for k in ("attention_factor", "beta_fast", "truncate", "rope_theta")]),
}


def attempt(name, seed):
    extra, how, matters = CHECKPOINTS[name]
    how = {"style": checkpoint.published, "dtype": "bfloat16", "shards": 1, **how}
    config, folder = {**BASE, **extra}, MODELS / name
    tied = config.get("tie_word_embeddings", False)
    state = {n: tiny.draw(seed, n, tuple(t.shape), tied)
             for n, t in LlamaForCausalLM(LlamaConfig(**config)).state_dict().items()}
    stored = how["style"](config, how["dtype"])
    checkpoint.save(folder, stored, state, getattr(torch, how["dtype"]), how["shards"])
    if name == "llama-default":
        train_demo.train_tokenizer(story.stories(seed=1, n=500), VOCAB).save(str(folder / "tokenizer.json"))
        checkpoint.write_json(folder / "tokenizer_config.json",
                              train_demo.tokenizer_config(VOCAB, BASE["max_position_embeddings"]))

    golden = reference.write(folder)
    tiny.judge(golden)
    size = sum(p.stat().st_size for p in folder.glob("model*.safetensors"))
    assert size <= LIMIT, f"{name}: {size} bytes of weights"
    tiny.check_matters(name, folder, stored, matters, golden)


def main():
    reference.setup()
    for name in CHECKPOINTS:
        shutil.rmtree(MODELS / name, ignore_errors=True)
        tiny.seeds(name, lambda seed, name=name: attempt(name, seed))


if __name__ == "__main__":
    main()
