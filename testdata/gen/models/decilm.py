"""DeciLM (Llama Nemotron Super and Ultra) of transformers' Llama: layers of different sizes, some without a part."""

import copy
import sys

import torch
import transformers
from transformers.models.llama import modeling_llama


class DeciLMConfig(transformers.LlamaConfig):
    model_type = "decilm"
    block_configs: list | None = None


class Nothing(torch.nn.Module):
    """A part that adds nothing."""

    def forward(self, hidden_states, **more):
        return torch.zeros_like(hidden_states), None


class NoMLP(Nothing):
    def forward(self, hidden_states):
        return torch.zeros_like(hidden_states)


def width(ffn, hidden):
    return -(-int(2 * ffn["ffn_mult"] * hidden / 3) // 256) * 256


class DeciLMForCausalLM(transformers.LlamaForCausalLM):
    config_class = DeciLMConfig

    def __init__(self, config):
        super().__init__(config)
        for i, (layer, block) in enumerate(zip(self.model.layers, config.block_configs)):
            own = copy.deepcopy(config)
            if block["attention"]["no_op"]:
                layer.input_layernorm, layer.self_attn = torch.nn.Identity(), Nothing()
            else:
                own.num_key_value_heads = own.num_attention_heads // block["attention"]["n_heads_in_group"]
                layer.self_attn = modeling_llama.LlamaAttention(own, i)
            if block["ffn"]["no_op"]:
                layer.post_attention_layernorm, layer.mlp = torch.nn.Identity(), NoMLP()
            else:
                own.intermediate_size = width(block["ffn"], own.hidden_size)
                layer.mlp = modeling_llama.LlamaMLP(own)


def register():
    """Adds the classes to transformers, which replaces its module while others are imported."""
    module = sys.modules["transformers"]
    module.DeciLMConfig, module.DeciLMForCausalLM = DeciLMConfig, DeciLMForCausalLM
