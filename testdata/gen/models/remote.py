"""Checkpoints of types whose classes are beside them and not in transformers, which equal a class of transformers but for
names, joined matrices and the keys of the configuration.

A Remote says how its publisher writes the checkpoint of that class, and reads it back. Facts are from the modeling and
configuration files beside the published checkpoints.
"""

import json
import re
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Callable

import torch
from safetensors.torch import load_file

import checkpoint
import decilm

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
    adapt: Callable = lambda model: model  # changes of the class of transformers
    stored: Callable = lambda config, tensors: tensors  # last changes of the published tensors
    weights: Callable = lambda config, tensors: tensors  # first changes of the tensors that are read

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
            return self.publish(config), self.stored(plain, tensors)

        return apply

    def plain(self, folder, to):
        """Writes a published folder as transformers reads it."""
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        decilm.register()
        of = getattr(sys.modules["transformers"], self.kind + "Config")
        known = {**{k: config[k] for k in config if k not in self.more or k in self.keys}}
        for here, there in self.keys.items():
            if there in config:
                known[here] = config[there]
        known.update(self.read(config))
        known.update(model_type=of.model_type, architectures=[self.kind + "ForCausalLM"])
        sizes = sizes_of(known)
        tensors = self.weights(known, load_file(folder / "model.safetensors"))
        for here, there in reversed(self.names):
            tensors = {n.replace(there, here): t for n, t in tensors.items()}
        for layers, joined, how in self.joins:
            _, split = how(known)
            for name in [n for n in tensors if joined + "." in n]:
                before, after = name.split(joined)
                parts = split(tensors.pop(name), [sizes[part.split(".")[-1]] for part in layers])
                tensors.update({before + part + after: t.contiguous() for part, t in zip(layers, parts)})
        checkpoint.write_json(to / "config.json", known)
        checkpoint.store({n: t.contiguous().clone() for n, t in tensors.items()}, to / "model.safetensors")


def sizes_of(config):
    """Returns the rows of the matrices that are joined."""
    dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    kv = config.setdefault("num_key_value_heads", config["num_attention_heads"]) * dim
    wide = config["intermediate_size"]
    return dict(q_proj=config["num_attention_heads"] * dim, k_proj=kv, v_proj=kv, gate_proj=wide, up_proj=wide)


class UnitRows(torch.nn.Linear):
    """A head whose rows are divided by their lengths."""

    def forward(self, x):
        return torch.nn.functional.linear(x, torch.nn.functional.normalize(self.weight))


def unit_head(model):
    model.lm_head.__class__ = UnitRows
    return model


class Open(torch.nn.Linear):
    """A gate that lets everything pass: its sigmoid is 1."""

    def forward(self, x):
        return torch.full_like(x[..., :1], 60.0)


def without_gates(model):
    for module in model.modules():
        if hasattr(module, "shared_expert_gate"):
            module.shared_expert_gate.__class__ = Open
    return model


def drop_gates(config, tensors):
    return {n: t for n, t in tensors.items() if "shared_expert_gate" not in n}


def add_gates(config, tensors):
    """Adds the gates that transformers has and that are not used."""
    gates = {n.split("shared_experts.")[0] for n in tensors if "shared_experts." in n}
    return tensors | {g + "shared_expert_gate.weight": torch.zeros(1, config["hidden_size"]) for g in gates}


def shared_read(key):
    """Returns the keys of a mixture with shared experts, whose number is at a key."""

    def read(config):
        layers = range(config["num_hidden_layers"])
        freq = config.get("moe_layer_freq", 1)
        dense = [i for i in layers if i < config.get("first_k_dense_replace", 0) or i % freq]
        return dict(
            shared_expert_intermediate_size=config[key] * config["moe_intermediate_size"], mlp_only_layers=dense,
            decoder_sparse_step=1, qkv_bias=config.get("use_qkv_bias", False), use_sliding_window=False,
            norm_topk_prob=config["norm_topk_prob"])

    return read


def shared_publish(key, bias=None):
    def publish(config):
        dense = config.pop("mlp_only_layers")
        config["first_k_dense_replace"] = len(dense)
        config[key] = config.pop("shared_expert_intermediate_size") // config["moe_intermediate_size"]
        qkv = config.pop("qkv_bias")
        return config | ({bias: qkv} if bias else {})

    return publish


QWEN_MOE_DROPS = ("rope_scaling", "layer_types", "sliding_window", "use_sliding_window", "max_window_layers",
                  "attention_dropout", "decoder_sparse_step", "output_router_logits", "router_aux_loss_coef")


def minicpm_publish(config):
    layers, hidden = config["num_hidden_layers"], config["hidden_size"]
    config["scale_depth"] = config.pop("residual_multiplier") * layers**0.5
    config["dim_model_base"] = round(hidden / config.pop("logits_scaling"))
    config["scale_emb"] = config.pop("embedding_multiplier")
    config.pop("attention_multiplier")
    if "num_local_experts" in config:
        config["num_experts"] = config.pop("num_local_experts")
    return config


def minicpm_read(config):
    more = {"num_local_experts": config["num_experts"]} if "num_experts" in config else {}
    return dict(
        embedding_multiplier=config["scale_emb"], residual_multiplier=config["scale_depth"] / config["num_hidden_layers"] ** 0.5,
        logits_scaling=config["hidden_size"] / config["dim_model_base"], attention_bias=False,
        attention_multiplier=(config["num_attention_heads"] / config["hidden_size"]) ** 0.5, **more)


def minicpm_apart(config, tensors):
    """Splits the experts of GraniteMoe."""
    out = {}
    for name, t in tensors.items():
        if m := re.fullmatch(r"(.*)block_sparse_moe\.input_linear\.weight", name):
            for e, both in enumerate(t):
                out[f"{m[1]}mlp.experts.{e}.w1.weight"], out[f"{m[1]}mlp.experts.{e}.w3.weight"] = both.chunk(2)
        elif m := re.fullmatch(r"(.*)block_sparse_moe\.output_linear\.weight", name):
            out.update({f"{m[1]}mlp.experts.{e}.w2.weight": part for e, part in enumerate(t)})
        else:
            out[name.replace("block_sparse_moe.router.layer", "mlp.gate")] = t
    return out


def minicpm_together(config, tensors):
    out, banks = {}, {}
    for name, t in tensors.items():
        if m := re.fullmatch(r"(.*)mlp\.experts\.(\d+)\.(w\d)\.weight", name):
            banks.setdefault(m[1], {})[int(m[2]), m[3]] = t
        else:
            out[name.replace("mlp.gate.", "block_sparse_moe.router.layer.")] = t
    for layer, bank in banks.items():
        each = range(1 + max(e for e, _ in bank))
        base = layer + "block_sparse_moe."
        out[base + "input_linear.weight"] = torch.stack([torch.cat([bank[e, "w1"], bank[e, "w3"]]) for e in each])
        out[base + "output_linear.weight"] = torch.stack([bank[e, "w2"] for e in each])
    return out


def mimo_head(config, tensors):
    """Adds the head that drafts: a layer, and what joins its inputs."""
    out, hidden = dict(tensors), config["hidden_size"]
    for name, t in tensors.items():
        if "layers.0." in name:
            out[name.replace("layers.0.", "mtp_layers.0.")] = t
    some = tensors["model.norm.weight"]
    out["model.mtp_layers.0.input_proj.weight"] = some.new_ones(hidden, 2 * hidden)
    for name in ("token_layernorm", "hidden_layernorm", "final_layernorm"):
        out[f"model.mtp_layers.0.{name}.weight"] = some.clone()
    return out


def phi_read(config):
    dim = config["n_embd"] // config["n_head"]
    return dict(
        intermediate_size=config["n_inner"] or 4 * config["n_embd"], num_key_value_heads=config["n_head_kv"] or config["n_head"],
        rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=config["rotary_dim"] / dim))


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


TYPES["baichuan2"] = Remote(
    "Llama", "BaichuanForCausalLM", names=[("self_attn.qkv_proj", "self_attn.W_pack")],
    joins=[(QKV, "self_attn.qkv_proj", rows)], more=dict(model_max_length=128), adapt=unit_head,
    drops=("mlp_bias", "attention_bias", "attention_dropout", "num_key_value_heads", "rope_scaling", "rope_theta", "head_dim"))
TYPES["baichuan"] = replace(TYPES["baichuan2"], architecture="BaiChuanForCausalLM", more={}, adapt=lambda model: model)
TYPES["minicpm"] = Remote(
    "Granite", "MiniCPMForCausalLM", publish=minicpm_publish, read=minicpm_read, drops=("attention_bias", "mlp_bias"))
TYPES["minicpm_moe"] = replace(TYPES["minicpm"], kind="GraniteMoe", stored=minicpm_apart, weights=minicpm_together)
TYPES["orion"] = Remote(
    "StableLm", "OrionForCausalLM", keys=dict(layer_norm_eps="rms_norm_eps"),
    read=lambda config: dict(partial_rotary_factor=1.0, use_qkv_bias=False),
    drops=("use_qkv_bias", "qk_layernorm", "use_parallel_residual", "partial_rotary_factor", "rope_scaling"))
TYPES["deepseek"] = Remote(
    "Qwen2Moe", "DeepseekForCausalLM", names=[("mlp.shared_expert.", "mlp.shared_experts.")],
    keys=dict(num_experts="n_routed_experts"), more=dict(scoring_func="softmax", moe_layer_freq=1, attention_bias=False),
    adapt=without_gates, stored=drop_gates, weights=add_gates, publish=shared_publish("n_shared_experts"),
    read=shared_read("n_shared_experts"), drops=QWEN_MOE_DROPS)
TYPES["bailing_moe"] = Remote(
    "Qwen2Moe", "BailingMoeForCausalLM",
    names=[("mlp.shared_expert.", "mlp.shared_experts."), ("model.embed_tokens", "model.word_embeddings"),
           ("self_attn.qkv_proj", "attention.query_key_value"), ("self_attn.o_proj", "attention.dense")],
    joins=[(QKV, "self_attn.qkv_proj", rows)], more=dict(norm_head=False, norm_softmax=False, use_bias=False),
    adapt=without_gates, stored=drop_gates, weights=add_gates, publish=shared_publish("num_shared_experts", "use_qkv_bias"),
    read=shared_read("num_shared_experts"), drops=QWEN_MOE_DROPS)

TYPES["internlm"] = Remote("Llama", "InternLMForCausalLM", keys=dict(attention_bias="bias"), drops=("mlp_bias", "head_dim"))
TYPES["internlm3"] = Remote(
    "Llama", "InternLM3ForCausalLM", keys=dict(attention_bias="qkv_bias"),
    publish=lambda config: config | {"bias": config.pop("mlp_bias")}, read=lambda config: dict(mlp_bias=config["bias"]))
TYPES["xverse"] = Remote("Llama", "XverseForCausalLM", drops=("attention_bias", "mlp_bias", "head_dim", "num_key_value_heads"))
TYPES["mimo"] = Remote(
    "Qwen2", "MiMoForCausalLM", more=dict(num_nextn_predict_layers=1, attention_bias=True), stored=mimo_head,
    weights=lambda config, tensors: {n: t for n, t in tensors.items() if ".mtp_layers." not in n})

TYPES["phi-msft"] = Remote(
    "Phi", "PhiForCausalLM",
    names=[("self_attn.qkv_proj", "mixer.Wqkv"), ("self_attn.dense", "mixer.out_proj"), ("input_layernorm", "ln"),
           ("model.embed_tokens", "transformer.embd.wte"), ("lm_head", "lm_head.linear"), ("model.final_layernorm", "lm_head.ln"),
           ("model.layers", "transformer.h")],
    joins=[(QKV, "self_attn.qkv_proj", rows)],
    keys=dict(hidden_size="n_embd", num_hidden_layers="n_layer", num_attention_heads="n_head", num_key_value_heads="n_head_kv",
              max_position_embeddings="n_positions", intermediate_size="n_inner", hidden_act="activation_function",
              layer_norm_eps="layer_norm_epsilon"),
    publish=lambda config: config | dict(rotary_dim=config["n_embd"] // config["n_head"] // 2, n_inner=None, n_head_kv=None),
    read=phi_read, drops=("rope_theta", "rope_scaling", "partial_rotary_factor", "qk_layernorm"))

TYPES["nemotron-nas"] = Remote(
    "DeciLM", "DeciLMForCausalLM", drops=("num_key_value_heads", "intermediate_size", "head_dim"),
    read=lambda config: dict(num_key_value_heads=config["num_attention_heads"], intermediate_size=256))


def of(folder):
    """Returns the Remote of a folder, or None."""
    config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    name = config["model_type"]
    if name == "minicpm" and "num_experts" in config:
        name = "minicpm_moe"
    if config["architectures"] == ["BaichuanForCausalLM"]:
        name = "baichuan2"
    return TYPES.get(name)
