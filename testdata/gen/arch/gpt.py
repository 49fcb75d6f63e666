"""The tables of GPT-2, GPT-NeoX and Phi-4 multimodal, for tables.py: as saved, published, and written by mlx-lm."""

import re

import transformers as tf

from checkpoint import four, rename
from dense import KEYS

GPT = {"vocab_size": 64, "n_positions": 128, "n_embd": 32, "n_layer": 2, "n_head": 4}


def gpt2(saved, write):
    config, tensors = saved(tf.GPT2LMHeadModel(tf.GPT2Config(**GPT)))
    write("gpt2", config, tensors)
    config, tensors = saved(tf.GPT2LMHeadModel(tf.GPT2Config(**GPT)))
    tensors = rename(tensors, (r"^transformer\.", ""))
    masks = {f"h.{i}.attn.bias": ["F32", 1, 1, 128, 128] for i in range(2)}
    keys = ("tie_word_embeddings", "n_inner")
    write("gpt2-published", {k: v for k, v in four(config).items() if k not in keys} | {"n_ctx": 128}, tensors | masks)
    turned = lambda n, spec: [spec[0], spec[2], spec[1]] if re.search(r"(c_attn|c_proj|c_fc)\.weight", n) else spec
    write("gpt2-mlx", four(config), {"model." + n: turned(n, spec) for n, spec in tensors.items()})


def gpt_neox(saved, write):
    keys = {k: v for k, v in KEYS.items() if k != "num_key_value_heads"}
    config, tensors = saved(tf.GPTNeoXForCausalLM(tf.GPTNeoXConfig(**keys)))
    write("gpt_neox", config, tensors)
    old = four(config)
    for key in ("attention_bias", "rope_scaling", "rope_theta"):
        old.pop(key)
    more = {}
    for i in range(2):
        name = f"gpt_neox.layers.{i}.attention."
        more |= {name + "bias": ["U8", 1, 1, 128, 128], name + "masked_bias": ["F16"], name + "rotary_emb.inv_freq": ["F16", 1]}
    write("gpt_neox-published", old | {"rotary_emb_base": 10000, "rotary_pct": 0.25}, tensors | more)
    write("gpt_neox-mlx", old, rename(tensors, (r"^gpt_neox\.layers\.", "model.h."), (r"^gpt_neox\.", "model."), (r"^", "model.")))


def phi4_multimodal(saved, write):
    """The first publication has adapters beside each matrix."""
    towers = dict(
        vision_config=dict(hidden_size=8, intermediate_size=8, num_hidden_layers=2, num_attention_heads=2, image_size=28,
                           crop_size=28, image_token_id=62),
        audio_config=dict(hidden_size=8, intermediate_size=8, num_blocks=2, num_attention_heads=2, ext_pw_out_channel=8,
                          depthwise_separable_out_channel=8, nemo_conv_channels=4, bias_max_distance=8, input_size=16,
                          audio_token_id=63))
    config, tensors = saved(tf.Phi4MultimodalForCausalLM(tf.Phi4MultimodalConfig(**KEYS, **towers, pad_token_id=0)))
    write("phi4_multimodal", config, tensors)
    old = {k: v for k, v in four(config).items() if k not in ("vision_config", "audio_config", "rope_theta")}
    old |= dict(model_type="phi4mm", architectures=["Phi4MMForCausalLM"])
    matrices = [(n, s) for n, s in tensors.items() if re.search(r"^model\.layers\.\d+\..*_proj\.weight$", n)]
    for name, spec in matrices:
        layer = name.removesuffix(".weight")
        tensors[layer + ".base_layer.weight"] = tensors.pop(name)
        for kind in ("speech", "vision"):
            tensors[f"{layer}.lora_A.{kind}.weight"] = ["BF16", 4, spec[2]]
            tensors[f"{layer}.lora_B.{kind}.weight"] = ["BF16", spec[1], 4]
    write("phi4_multimodal-first", old, tensors)


def tables(saved, write):
    gpt2(saved, write)
    gpt_neox(saved, write)
    phi4_multimodal(saved, write)
