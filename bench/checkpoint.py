"""Makes a synthetic Llama checkpoint of random bf16 weights: checkpoint.py DIR [GIGABYTES]. Needs numpy."""

import json
import os
import struct
import sys

import numpy as np

HIDDEN, FF, HEADS, KV, VOCAB = 2048, 8192, 32, 8, 32000


def tensors(layers):
    head = HIDDEN // HEADS
    yield "model.embed_tokens.weight", (VOCAB, HIDDEN)
    for i in range(layers):
        p = f"model.layers.{i}."
        yield p + "input_layernorm.weight", (HIDDEN,)
        yield p + "self_attn.q_proj.weight", (HEADS * head, HIDDEN)
        yield p + "self_attn.k_proj.weight", (KV * head, HIDDEN)
        yield p + "self_attn.v_proj.weight", (KV * head, HIDDEN)
        yield p + "self_attn.o_proj.weight", (HIDDEN, HEADS * head)
        yield p + "post_attention_layernorm.weight", (HIDDEN,)
        yield p + "mlp.gate_proj.weight", (FF, HIDDEN)
        yield p + "mlp.up_proj.weight", (FF, HIDDEN)
        yield p + "mlp.down_proj.weight", (HIDDEN, FF)
    yield "model.norm.weight", (HIDDEN,)
    yield "lm_head.weight", (VOCAB, HIDDEN)


def size(shape):
    return 2 * int(np.prod(shape))


def main(folder, gigabytes):
    os.makedirs(folder, exist_ok=True)
    one = sum(size(s) for _, s in tensors(1)) - sum(size(s) for _, s in tensors(0))
    layers = max(1, round((gigabytes * 1e9 - sum(size(s) for _, s in tensors(0))) / one))
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCAB, "hidden_size": HIDDEN,
        "intermediate_size": FF, "num_hidden_layers": layers, "num_attention_heads": HEADS, "num_key_value_heads": KV,
        "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
        "tie_word_embeddings": False, "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2,
    }
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f, indent=2)
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors(layers):
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + size(shape)]}
        at += size(shape)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    rng = np.random.default_rng(1)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, shape in tensors(layers):
            left = int(np.prod(shape))
            while left > 0:
                n = min(left, 1 << 22)
                values = rng.standard_normal(n, dtype=np.float32) * np.float32(0.02)
                f.write((values.view(np.uint32) >> 16).astype("<u2").tobytes())  # bf16 is the upper half
                left -= n
    print(os.path.getsize(os.path.join(folder, "model.safetensors")))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 2.0)
