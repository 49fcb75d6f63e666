"""The tables of types whose classes are beside their checkpoints, for tables.py: as they are published."""

import torch
import transformers as tf

import remote
from dense import KEYS

MOE = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=32, qkv_bias=False,
           mlp_only_layers=[])
# Further keys of the class of transformers that a type equals, and names of buffers that its publications have.
TYPES = {
    "chatglm": (dict(head_dim=8, pad_token_id=0), {"transformer.rotary_pos_emb.inv_freq": ["F16", 2]}),
    "qwen": (dict(num_key_value_heads=4), {}),
    "internlm2": ({}, {}),
    "exaone": ({}, {"transformer.rotary.inv_freq": ["F32", 4]}),
    "baichuan": (dict(num_key_value_heads=4), {"model.layers.0.self_attn.rotary_emb.inv_freq": ["F32", 4]}),
    "minicpm": (dict(embedding_multiplier=2.0, logits_scaling=0.5), {}),
    "minicpm_moe": (dict(num_local_experts=4, num_experts_per_tok=2), {}),
    "orion": (dict(partial_rotary_factor=1.0), {}),
    "deepseek": ({**MOE, "mlp_only_layers": [0]}, {}),
    "bailing_moe": ({**MOE, "qkv_bias": True}, {}),
}


def tables(saved, write):
    for name, (more, buffers) in TYPES.items():
        of = remote.TYPES[name]
        config, tensors = saved(getattr(tf, of.kind + "ForCausalLM")(getattr(tf, of.kind + "Config")(**{**KEYS, **more})))
        empty = {n: torch.empty(spec[1:], dtype=torch.bfloat16) for n, spec in tensors.items()}
        config, tensors = of.style(name.removesuffix("_moe") if name == "minicpm_moe" else name)(config, empty)
        write(name, config, {n: ["BF16", *t.shape] for n, t in tensors.items()} | buffers)
