"""Checkpoints of types whose classes are beside them and not in transformers, which equal a class of transformers but for
names, joined matrices and the keys of the configuration.

A Remote says how its publisher writes the checkpoint of that class, and reads it back. Facts are from the modeling and
configuration files beside the published checkpoints.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import torch
from safetensors.torch import load_file

import checkpoint

QKV = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")


def rows(config):
    """Joins the parts one after the other."""
    return lambda parts: torch.cat(parts), lambda whole, sizes: whole.split(sizes)


def groups(config):
    """Joins each key and value head after the query heads that read it."""
    kv = config["num_key_value_heads"]
    split = lambda part: part.reshape(kv, -1, *part.shape[1:])

    def apart(whole, sizes):
        return [p.reshape(-1, *whole.shape[1:]) for p in split(whole).split([n // kv for n in sizes], dim=1)]

    return lambda parts: torch.cat([split(p) for p in parts], dim=1).flatten(0, 1), apart


@dataclass
class Remote:
    kind: str  # the class of transformers without ForCausalLM
    architecture: str
    names: list = field(default_factory=list)  # pairs: parts of its names, and the publisher's
    joins: list = field(default_factory=list)  # (layers, their joined name, function of the configuration)
    keys: dict = field(default_factory=dict)  # its keys, and the publisher's
    more: dict = field(default_factory=dict)  # further keys of the publisher
    publish: Callable = lambda config: config  # last changes of a published configuration
    read: Callable = lambda config: {}  # keys of transformers that follow from a published configuration
    drops: tuple = ()  # keys of transformers that are not published
    load: Callable = lambda model, config: model  # changes of the loaded model
    weights: Callable = lambda config, tensors: tensors  # changes of the tensors that are read
    left_out: str = r"^$"  # names of tensors that are not read

    def style(self, model_type):
        """Returns a style of tiny.Variant."""

        def apply(config, tensors):
            plain, config = config, checkpoint.four(config)
            for layers, joined, how in self.joins:
                join, _ = how(plain)
                for name in [n for n in tensors if layers[0] + "." in n]:
                    before, after = name.split(layers[0])
                    tensors[before + joined + after] = join([tensors.pop(before + part + after) for part in layers])
            for here, there in self.names:
                tensors = {n.replace(here, there): t for n, t in tensors.items()}
            for here, there in self.keys.items():
                if here in config:
                    config[there] = config.pop(here)
            for key in self.drops:
                config.pop(key, None)
            config.update(model_type=model_type, architectures=[self.architecture], **self.more)
            return self.publish(config), tensors

        return apply

    def plain(self, folder, to):
        """Writes a published folder as transformers reads it."""
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        of = getattr(__import__("transformers"), self.kind + "Config")
        known = {**{k: config[k] for k in config if k not in self.more or k in self.keys}}
        for here, there in self.keys.items():
            if there in config:
                known[here] = config[there]
        known.update(self.read(config))
        known.update(model_type=of.model_type, architectures=[self.kind + "ForCausalLM"])
        sizes = sizes_of(known)
        tensors = {n: t for n, t in load_file(folder / "model.safetensors").items() if not re.search(self.left_out, n)}
        for here, there in reversed(self.names):
            tensors = {n.replace(there, here): t for n, t in tensors.items()}
        for layers, joined, how in self.joins:
            _, split = how(known)
            for name in [n for n in tensors if joined + "." in n]:
                before, after = name.split(joined)
                parts = split(tensors.pop(name), [sizes[part.split(".")[-1]] for part in layers])
                tensors.update({before + part + after: t.contiguous() for part, t in zip(layers, parts)})
        tensors = self.weights(config, tensors)
        checkpoint.write_json(to / "config.json", known)
        checkpoint.store({n: t.contiguous().clone() for n, t in tensors.items()}, to / "model.safetensors")


def sizes_of(config):
    """Returns the rows of the matrices that are joined."""
    dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    kv = config.setdefault("num_key_value_heads", config["num_attention_heads"]) * dim
    wide = config["intermediate_size"]
    return dict(q_proj=config["num_attention_heads"] * dim, k_proj=kv, v_proj=kv, gate_proj=wide, up_proj=wide)


def chatglm_read(config):
    theta = 10000.0 * config.get("rope_ratio", 1)
    return dict(
        attention_bias=config["add_qkv_bias"],
        rope_parameters=dict(rope_type="default", rope_theta=theta, partial_rotary_factor=0.5), partial_rotary_factor=0.5)


def chatglm_publish(config):
    theta = config.pop("rope_theta")
    if theta != 10000.0:
        config["rope_ratio"] = theta / 10000.0
    config["add_qkv_bias"] = config.pop("attention_bias")
    return config


def qwen_publish(config):
    config["intermediate_size"] *= 2
    return config


def qwen_read(config):
    return dict(intermediate_size=config["intermediate_size"] // 2, use_sliding_window=False)


def exaone_publish(config):
    config["num_layers"] = config.pop("num_hidden_layers")
    return config


TYPES = {
    "chatglm": Remote(
        "Glm", "ChatGLMModel",
        names=[("self_attn.qkv_proj", "self_attention.query_key_value"), ("self_attn.o_proj", "self_attention.dense"),
               ("mlp.gate_up_proj", "mlp.dense_h_to_4h"), ("mlp.down_proj", "mlp.dense_4h_to_h"),
               ("model.embed_tokens", "transformer.embedding.word_embeddings"),
               ("model.norm", "transformer.encoder.final_layernorm"), ("model.layers", "transformer.encoder.layers"),
               ("lm_head", "transformer.output_layer")],
        joins=[(QKV, "self_attn.qkv_proj", rows)],
        keys=dict(vocab_size="padded_vocab_size", num_hidden_layers="num_layers", intermediate_size="ffn_hidden_size",
                  rms_norm_eps="layernorm_epsilon", head_dim="kv_channels", num_key_value_heads="multi_query_group_num",
                  max_position_embeddings="seq_length"),
        more=dict(add_bias_linear=False, apply_residual_connection_post_layernorm=False, multi_query_attention=True,
                  original_rope=True, post_layer_norm=True, rmsnorm=True),
        publish=chatglm_publish, read=chatglm_read, drops=("hidden_act", "rope_scaling", "initializer_range")),
    "qwen": Remote(
        "Qwen2", "QWenLMHeadModel",
        names=[("self_attn.qkv_proj", "attn.c_attn"), ("self_attn.o_proj", "attn.c_proj"), ("mlp.gate_proj", "mlp.w2"),
               ("mlp.up_proj", "mlp.w1"), ("mlp.down_proj", "mlp.c_proj"), ("input_layernorm", "ln_1"),
               ("post_attention_layernorm", "ln_2"), ("model.embed_tokens", "transformer.wte"),
               ("model.norm", "transformer.ln_f"), ("model.layers", "transformer.h")],
        joins=[(QKV, "self_attn.qkv_proj", rows)],
        keys=dict(rms_norm_eps="layer_norm_epsilon", rope_theta="rotary_emb_base"),
        more=dict(no_bias=True, rotary_pct=1.0, scale_attn_weights=True, use_dynamic_ntk=True, use_logn_attn=True),
        publish=qwen_publish, read=qwen_read,
        drops=("hidden_act", "rope_scaling", "layer_types", "num_key_value_heads", "sliding_window", "use_sliding_window",
               "max_window_layers", "attention_dropout")),
    "internlm2": Remote(
        "Llama", "InternLM2ForCausalLM",
        names=[("self_attn.qkv_proj", "attention.wqkv"), ("self_attn.o_proj", "attention.wo"),
               ("mlp.gate_proj", "feed_forward.w1"), ("mlp.up_proj", "feed_forward.w3"), ("mlp.down_proj", "feed_forward.w2"),
               ("input_layernorm", "attention_norm"), ("post_attention_layernorm", "ffn_norm"),
               ("model.embed_tokens", "model.tok_embeddings"), ("lm_head", "output")],
        joins=[(QKV, "self_attn.qkv_proj", groups)],
        keys=dict(attention_bias="bias"), drops=("mlp_bias", "head_dim", "attention_dropout")),
    "exaone": Remote(
        "Llama", "ExaoneForCausalLM",
        names=[("self_attn.o_proj", "self_attn.out_proj"), ("self_attn.", "attn.attention."),
               ("mlp.gate_proj", "mlp.c_fc_0"), ("mlp.up_proj", "mlp.c_fc_1"), ("mlp.down_proj", "mlp.c_proj"),
               ("input_layernorm", "ln_1"), ("post_attention_layernorm", "ln_2"), ("model.embed_tokens", "transformer.wte"),
               ("model.norm", "transformer.ln_f"), ("model.layers", "transformer.h")],
        keys=dict(num_hidden_layers="num_layers", rms_norm_eps="layer_norm_epsilon", hidden_act="activation_function"),
        drops=("mlp_bias", "attention_bias", "attention_dropout")),
}


def of(folder):
    """Returns the Remote of a folder, or None."""
    config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    return TYPES.get(config["model_type"])
