#!/usr/bin/env python3
"""Writes arch/testdata/rope.json: rotary frequencies as Hugging Face transformers computes them.

Needs torch and transformers 5.23. Run from the repository's root: python3 testdata/gen/rope.py
"""
import json
import pathlib

import transformers
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

BASE = {"vocab_size": 32, "hidden_size": 256, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}

CASES = {
    "no rope keys": {},
    "theta, transformers 4": {"rope_theta": 500000.0},
    "theta, transformers 5": {"rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"}},
    "head_dim 96": {"head_dim": 96, "rope_theta": 10000},
    "head_dim 80, theta 1e6": {"head_dim": 80, "rope_theta": 1e6},
    "default ignores a partial factor": {"partial_rotary_factor": 0.5},
    "empty scaling": {"rope_scaling": {}, "rope_parameters": {"rope_type": "linear", "factor": 2.0}},
    "scaling wins over parameters": {
        "rope_scaling": {"type": "linear", "factor": 4.0},
        "rope_parameters": {"rope_type": "default", "rope_theta": 77.0},
    },
    "linear": {"rope_theta": 10000.0, "rope_scaling": {"type": "linear", "factor": 3.0}},
    "linear, both type keys": {"rope_scaling": {"type": "llama3", "rope_type": "linear", "factor": 2.5}},
    "llama3.1": {"head_dim": 128, "rope_theta": 500000.0, "max_position_embeddings": 131072,
                 "rope_scaling": {"rope_type": "llama3", **LLAMA3}},
    "llama3.2": {"head_dim": 64, "rope_theta": 500000.0, "max_position_embeddings": 131072,
                 "rope_scaling": {"rope_type": "llama3", **LLAMA3, "factor": 32.0}},
    "llama3, transformers 5": {"head_dim": 64, "max_position_embeddings": 1024,
                               "rope_parameters": {"rope_type": "llama3", "rope_theta": 10000.0, **LLAMA3,
                                                   "original_max_position_embeddings": 256}},
    "llama3, original length by default": {"max_position_embeddings": 4096, "rope_scaling": {
        "type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4}},
    "llama3, original length at the top": {"original_max_position_embeddings": 512, "max_position_embeddings": 4096,
                                           "rope_scaling": {"rope_type": "llama3", **LLAMA3}},
    "yarn": {"head_dim": 128, "rope_theta": 1000000.0, "max_position_embeddings": 131072, "rope_scaling": {
        "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}},
    "yarn, factor below one": {"rope_scaling": {
        "type": "yarn", "factor": 0.5, "original_max_position_embeddings": 512}},
    "yarn, betas": {"rope_theta": 150000, "max_position_embeddings": 131072, "rope_scaling": {
        "rope_type": "yarn", "factor": 32.0, "beta_fast": 24, "beta_slow": 2.0, "original_max_position_embeddings": 4096}},
    "yarn, no truncation": {"rope_theta": 150000, "max_position_embeddings": 131072, "rope_scaling": {
        "rope_type": "yarn", "factor": 32.0, "truncate": False, "original_max_position_embeddings": 4096}},
    "yarn, truncate null": {"rope_theta": 150000, "max_position_embeddings": 131072, "rope_scaling": {
        "rope_type": "yarn", "factor": 32.0, "truncate": None, "original_max_position_embeddings": 4096}},
    "yarn, mscale": {"max_position_embeddings": 163840, "rope_scaling": {
        "type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 0.707, "original_max_position_embeddings": 4096}},
    "yarn, mscale alone": {"max_position_embeddings": 163840, "rope_scaling": {
        "type": "yarn", "factor": 40, "mscale": 0.707, "mscale_all_dim": 0, "original_max_position_embeddings": 4096}},
    "yarn, attention factor": {"max_position_embeddings": 16384, "rope_scaling": {
        "type": "yarn", "factor": 4.0, "attention_factor": 1.25, "original_max_position_embeddings": 4096}},
    "yarn, factor null": {"max_position_embeddings": 16384, "rope_scaling": {
        "type": "yarn", "factor": None, "original_max_position_embeddings": 4096}},
    "yarn, zero betas": {"max_position_embeddings": 16384, "rope_scaling": {
        "type": "yarn", "factor": 4.0, "beta_fast": 0, "beta_slow": 0, "original_max_position_embeddings": 4096}},
    "yarn, original length by default": {"max_position_embeddings": 2048, "rope_scaling": {"type": "yarn", "factor": 2.0}},
    "yarn, tiny": {"head_dim": 16, "max_position_embeddings": 256, "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64}},
}


def golden(name, extra):
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **BASE, **extra}
    # from_dict changes what it is given
    rope = LlamaRotaryEmbedding(LlamaConfig.from_dict(json.loads(json.dumps(config))))
    return {
        "name": name,
        "config": config,
        "head_dim": extra.get("head_dim", BASE["hidden_size"] // BASE["num_attention_heads"]),
        "inv_freq": [float(f) for f in rope.inv_freq],
        "attention_scale": float(rope.attention_scaling),
    }


out = pathlib.Path("arch/testdata/rope.json")
out.parent.mkdir(parents=True, exist_ok=True)
rows = [json.dumps(golden(name, extra)) for name, extra in CASES.items()]
out.write_text("[\n" + ",\n".join(rows) + "\n]\n")
print(f"{out}: {len(rows)} cases, transformers {transformers.__version__}")
