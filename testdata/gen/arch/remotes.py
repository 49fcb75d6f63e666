"""The tables of types whose classes are beside their checkpoints, for tables.py: as they are published."""

import sys

import torch
import transformers as tf

import decilm
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
    "nemotron-nas": (dict(block_configs=[
        dict(attention=dict(no_op=True), ffn=dict(no_op=False, ffn_mult=1.0)),
        dict(attention=dict(no_op=False, n_heads_in_group=2), ffn=dict(no_op=True))]), {}),
    "phi-msft": (dict(num_key_value_heads=4, intermediate_size=128), {}),
    "deepseek": ({**MOE, "mlp_only_layers": [0]}, {}),
    "bailing_moe": ({**MOE, "qkv_bias": True}, {}),
}


GPT = {"vocab_size": 64, "n_positions": 128, "n_embd": 32, "n_layer": 2, "n_head": 4}


def gpt(saved, write):
    """Writes further types like GPT, whose classes are in transformers."""
    config, tensors = saved(tf.GPTBigCodeForCausalLM(tf.GPTBigCodeConfig(**GPT)))
    masks = {f"transformer.h.{i}.attn.bias": ["BOOL", 1, 1, 128, 128] for i in range(2)}
    write("gpt_bigcode", config, tensors | masks)
    config, tensors = saved(tf.GPTBigCodeForCausalLM(tf.GPTBigCodeConfig(**GPT, multi_query=False)))
    write("gpt_bigcode-heads", config, tensors)
    config, tensors = saved(tf.GPTJForCausalLM(tf.GPTJConfig(**GPT, rotary_dim=4)))
    write("gptj", config, tensors | {n: ["U8", 1, 1, 128, 128] for n in masks})
    for name, more in (("falcon", {}), ("falcon-groups", dict(new_decoder_architecture=True, num_kv_heads=2)),
                       ("falcon-sequential", dict(multi_query=False, parallel_attn=False, bias=True))):
        config, tensors = saved(tf.FalconForCausalLM(tf.FalconConfig(
            vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128, **more)))
        write(name, config, tensors)
    config, tensors = saved(tf.OPTForCausalLM(tf.OPTConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128, ffn_dim=48,
        word_embed_proj_dim=32)))
    write("opt", config, tensors)
    config, tensors = saved(tf.PhiForCausalLM(tf.PhiConfig(**KEYS, qk_layernorm=True)))
    write("phi", config, tensors)


def tables(saved, write):
    gpt(saved, write)
    decilm.register()
    for name, (more, buffers) in TYPES.items():
        of = remote.TYPES[name]
        kinds = sys.modules["transformers"]
        config = getattr(kinds, of.kind + "Config")(**{**KEYS, **more})
        config, tensors = saved(getattr(kinds, of.kind + "ForCausalLM")(config))
        empty = {n: torch.empty(spec[1:], dtype=torch.bfloat16) for n, spec in tensors.items()}
        config, tensors = of.style(name.removesuffix("_moe") if name == "minicpm_moe" else name)(config, empty)
        write(name, config, {n: ["BF16", *t.shape] for n, t in tensors.items()} | buffers)
