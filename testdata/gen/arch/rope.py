"""Writes arch/testdata/rope.json: rotary frequencies as transformers computes them."""
import json
import pathlib

import torch
import transformers
from transformers import (Gemma3TextConfig, Gemma4TextConfig, Glm4MoeLiteConfig, LlamaConfig, Qwen3Config, Qwen3_5TextConfig)
from transformers.models.gemma3.modeling_gemma3 import Gemma3RotaryEmbedding
from transformers.models.gemma4.modeling_gemma4 import Gemma4TextRotaryEmbedding
from transformers.models.glm4_moe_lite.modeling_glm4_moe_lite import Glm4MoeLiteRotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.qwen3.modeling_qwen3 import Qwen3RotaryEmbedding
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5TextRotaryEmbedding

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
    # from_dict changes its argument
    rope = LlamaRotaryEmbedding(LlamaConfig.from_dict(json.loads(json.dumps(config))))
    return {
        "name": name,
        "config": config,
        "head_dim": extra.get("head_dim", BASE["hidden_size"] // BASE["num_attention_heads"]),
        "inv_freq": [float(f) for f in rope.inv_freq],
        "attention_scale": float(rope.attention_scaling),
    }


def factors(pairs, low, high):
    return [round(low + (high - low) * i / (pairs - 1), 3) for i in range(pairs)]


LONG = {"rope_type": "longrope", "short_factor": factors(32, 1.0, 1.3), "long_factor": factors(32, 1.1, 60.0)}
DYNAMIC = {"type": "dynamic", "factor": 4.0}
MODELS = {
    "qwen3": (Qwen3Config, Qwen3RotaryEmbedding, {"head_dim": 64, "max_position_embeddings": 4096}),
    "qwen3_5_text": (Qwen3_5TextConfig, Qwen3_5TextRotaryEmbedding, {"head_dim": 64, "max_position_embeddings": 4096}),
    "glm4_moe_lite": (Glm4MoeLiteConfig, Glm4MoeLiteRotaryEmbedding, {"num_key_value_heads": 4, "qk_rope_head_dim": 32}),
    "gemma3_text": (Gemma3TextConfig, Gemma3RotaryEmbedding, {"head_dim": 64, "num_hidden_layers": 6}),
    "gemma4_text": (Gemma4TextConfig, Gemma4TextRotaryEmbedding, {"head_dim": 32, "layer_types": ["sliding_attention", "full_attention"],
                                                                 "num_hidden_layers": 2, "hidden_size_per_layer_input": 0}),
}
# Further cases: model, length of the text (0 = none yet), type of layers, keys.
MORE = {
    "qwen3, rope_theta": ("qwen3", 0, None, {"rope_theta": 1000000}),
    "longrope, short": ("qwen3", 100, None, {"original_max_position_embeddings": 512, "rope_scaling": LONG}),
    "longrope, at the limit": ("qwen3", 512, None, {"original_max_position_embeddings": 512, "rope_scaling": LONG}),
    "longrope, long": ("qwen3", 513, None, {"original_max_position_embeddings": 512, "rope_scaling": LONG}),
    "longrope, factor": ("qwen3", 600, None, {"rope_parameters": {**LONG, "rope_theta": 5e5, "factor": 16.0,
                                                                  "original_max_position_embeddings": 512}}),
    "longrope, attention factor": ("qwen3", 0, None, {"rope_scaling": {**LONG, "attention_factor": 1.5}}),
    "longrope, no scaling": ("qwen3", 5000, None, {"rope_scaling": LONG}),
    "dynamic, short": ("qwen3", 4096, None, {"rope_scaling": DYNAMIC}),
    "dynamic, one beyond": ("qwen3", 4097, None, {"rope_scaling": DYNAMIC}),
    "dynamic, long": ("qwen3", 16384, None, {"rope_theta": 1e6, "rope_scaling": DYNAMIC}),
    "qwen3_5, a quarter by default": ("qwen3_5_text", 0, None, {"rope_parameters": {"rope_type": "default", "rope_theta": 1e7}}),
    "qwen3_5, older keys": ("qwen3_5_text", 0, None, {"rope_theta": 1e7, "partial_rotary_factor": 0.5}),
    "qwen3_5, yarn": ("qwen3_5_text", 0, None, {"rope_parameters": {
        "rope_type": "yarn", "rope_theta": 1e7, "factor": 4.0, "original_max_position_embeddings": 1024, "partial_rotary_factor": 0.25}}),
    "glm": ("glm4_moe_lite", 0, None, {"rope_theta": 1000000, "rope_scaling": None, "partial_rotary_factor": 1.0}),
    "gemma3, full by default": ("gemma3_text", 0, "full_attention", {}),
    "gemma3, sliding by default": ("gemma3_text", 0, "sliding_attention", {}),
    "gemma3, full, older keys": ("gemma3_text", 0, "full_attention", {
        "rope_theta": 2e6, "rope_local_base_freq": 2e4, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}),
    "gemma3, sliding, older keys": ("gemma3_text", 0, "sliding_attention", {
        "rope_theta": 2e6, "rope_local_base_freq": 2e4, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}),
    "gemma3, full, per type": ("gemma3_text", 0, "full_attention", {"rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 8.0}, "sliding_attention": {"rope_type": "default", "rope_theta": 5e3}}}),
    "gemma3, sliding, per type": ("gemma3_text", 0, "sliding_attention", {"rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 8.0}, "sliding_attention": {"rope_type": "default", "rope_theta": 5e3}}}),
    "gemma4, proportional by default": ("gemma4_text", 0, "full_attention", {}),
    "gemma4, sliding by default": ("gemma4_text", 0, "sliding_attention", {}),
    "gemma4, proportional": ("gemma4_text", 0, "full_attention", {"global_head_dim": 48, "rope_parameters": {
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 1e5, "factor": 2.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}}),
    "gemma4, all of a head": ("gemma4_text", 0, "full_attention", {"rope_parameters": {
        "full_attention": {"rope_type": "proportional", "rope_theta": 1e5}, "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}}),
}


def further(name, model, length, layer_type, extra):
    kind, embedding, keys = MODELS[model]
    config = {"model_type": model, **BASE, **keys, **extra}
    rope = embedding(kind.from_dict(json.loads(json.dumps(config))))
    x = torch.zeros(1, 1, 1)
    positions = torch.arange(length)[None] if length else None
    out = {"name": name, "config": config, "length": length}
    if layer_type:
        if length:
            rope(x, positions, layer_type)
        freqs, scale = getattr(rope, layer_type + "_inv_freq"), getattr(rope, layer_type + "_attention_scaling")
        out["layer_type"] = layer_type
    else:
        if length:
            rope(x, positions)
        freqs, scale = rope.inv_freq, rope.attention_scaling
    return {**out, "inv_freq": [float(f) for f in freqs], "attention_scale": float(scale)}


out = pathlib.Path(__file__).resolve().parents[3] / "arch" / "testdata" / "rope.json"
rows = [json.dumps(golden(name, extra)) for name, extra in CASES.items()]
rows += [json.dumps(further(name, *case)) for name, case in MORE.items()]
out.write_text("[\n" + ",\n".join(rows) + "\n]\n")
print(f"{out}: {len(rows)} cases, transformers {transformers.__version__}")
