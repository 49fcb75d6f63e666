"""Makes the models that the benchmark runs: random weights in a published shape, as a checkpoint and as a GGUF file.

Both hold the same bf16 values, so each program quantizes the same weights by its own rules. Needs numpy.
"""

import json
import os
import struct

import numpy as np

# What a shape is: the numbers that a Llama has. "thin" is dense with its layers, operations and vocabulary and next to no
# arithmetic: for trying the benchmark out.
SHAPES = {
    "dense": {"hidden": 2048, "intermediate": 5632, "layers": 16, "heads": 16, "kv_heads": 4, "head_dim": 128, "vocab": 32000},
    "thin": {"hidden": 256, "intermediate": 256, "layers": 16, "heads": 4, "kv_heads": 1, "head_dim": 64, "vocab": 32000},
}

CONTEXT = 8192
EPS = 1e-5
THETA = 10000.0

# Published name, name in GGUF; {} is the layer. What follows names rows and columns; () is one row, a norm.
TENSORS = [
    ("model.embed_tokens.weight", "token_embd.weight", ("vocab", "hidden")),
    ("model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", ()),
    ("model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight", ("q", "hidden")),
    ("model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight", ("kv", "hidden")),
    ("model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight", ("kv", "hidden")),
    ("model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight", ("hidden", "q")),
    ("model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight", ()),
    ("model.layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight", ("intermediate", "hidden")),
    ("model.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight", ("intermediate", "hidden")),
    ("model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight", ("hidden", "intermediate")),
    ("model.norm.weight", "output_norm.weight", ()),
    ("lm_head.weight", "output.weight", ("vocab", "hidden")),
]


def tensors(shape):
    """Published name, GGUF name and dimensions of every tensor, in order."""
    sizes = {**shape, "q": shape["heads"] * shape["head_dim"], "kv": shape["kv_heads"] * shape["head_dim"]}
    layered = [t for t in TENSORS if "{}" in t[0]]
    plain = [t for t in TENSORS if "{}" not in t[0]]
    order = [plain[0], *[(a.format(i), b.format(i), d) for i in range(shape["layers"]) for a, b, d in layered], *plain[1:]]
    for published, gguf, dims in order:
        yield published, gguf, tuple(sizes[d] for d in dims) or (shape["hidden"],)


def parameters(shape):
    return sum(int(np.prod(dims)) for _, _, dims in tensors(shape))


def values(shape):
    """The weights as bf16 bits, one tensor after the other: norms are 1, the rest is normal with deviation 0.02."""
    rng = np.random.default_rng(1)
    for published, gguf, dims in tensors(shape):
        if len(dims) == 1:
            weights = np.ones(dims, np.float32)
        else:
            weights = rng.standard_normal(dims, dtype=np.float32) * np.float32(0.02)
        yield published, gguf, (weights.view(np.uint32) >> 16).astype("<u2")  # bf16 is the upper half


def tokenizer(vocab):
    """A tokenizer.json of bytes and made-up words: enough for turning ids into text."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = [chr(b) if b in printable else chr(0x100 + b - sum(p < b for p in printable)) for b in range(256)]
    words = [*letters, "<s>", "</s>", *("\u0120t" + str(i) for i in range(vocab - 258))]
    special = [{"id": i, "content": words[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for i in (256, 257)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
        "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": {w: i for i, w in enumerate(words)}, "merges": []},
    }


def write_checkpoint(shape, folder):
    os.makedirs(folder, exist_ok=True)
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": shape["vocab"], "hidden_size": shape["hidden"],
        "intermediate_size": shape["intermediate"], "num_hidden_layers": shape["layers"], "num_attention_heads": shape["heads"],
        "num_key_value_heads": shape["kv_heads"], "head_dim": shape["head_dim"], "max_position_embeddings": CONTEXT,
        "rms_norm_eps": EPS, "rope_theta": THETA, "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        "bos_token_id": 256, "eos_token_id": 257,
    }
    files = {
        "config.json": config,
        "tokenizer.json": tokenizer(shape["vocab"]),
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "clean_up_tokenization_spaces": False},
    }
    for name, value in files.items():
        with open(os.path.join(folder, name), "w") as f:
            json.dump(value, f)
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, _, dims in tensors(shape):
        size = 2 * int(np.prod(dims))
        header[name] = {"dtype": "BF16", "shape": list(dims), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, _, bits in values(shape):
            bits.tofile(f)


# Of gguf version 3, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
UINT32, FLOAT32, STRING = 4, 6, 8
F32, BF16 = 0, 30
ALIGNMENT = 32


def write_gguf(shape, path):
    """Norms are f32, as llama.cpp wants them; the rest is bf16."""
    keys = [
        ("general.architecture", STRING, "llama"), ("general.name", STRING, "random"), ("llama.vocab_size", UINT32, shape["vocab"]),
        ("llama.context_length", UINT32, CONTEXT), ("llama.embedding_length", UINT32, shape["hidden"]), ("llama.block_count", UINT32, shape["layers"]),
        ("llama.feed_forward_length", UINT32, shape["intermediate"]), ("llama.attention.head_count", UINT32, shape["heads"]),
        ("llama.attention.head_count_kv", UINT32, shape["kv_heads"]), ("llama.attention.key_length", UINT32, shape["head_dim"]),
        ("llama.attention.value_length", UINT32, shape["head_dim"]), ("llama.attention.layer_norm_rms_epsilon", FLOAT32, EPS),
        ("llama.rope.dimension_count", UINT32, shape["head_dim"]), ("llama.rope.freq_base", FLOAT32, THETA),
        ("tokenizer.ggml.model", STRING, "none"),
    ]
    every = list(tensors(shape))
    with open(path, "wb") as f:
        f.write(b"GGUF" + struct.pack("<IQQ", 3, len(every), len(keys)))
        for key, kind, value in keys:
            f.write(string(key) + struct.pack("<I", kind))
            f.write(string(value) if kind == STRING else struct.pack("<f" if kind == FLOAT32 else "<I", value))
        at = 0
        for _, name, dims in every:
            f.write(string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *reversed(dims), BF16 if len(dims) > 1 else F32, at))
            at += aligned(int(np.prod(dims)) * (2 if len(dims) > 1 else 4))
        f.write(bytes(-f.tell() % ALIGNMENT))
        for _, name, bits in values(shape):
            if bits.ndim == 1:
                bits = (bits.astype("<u4") << 16).view("<f4")
            elif name.endswith(("attn_q.weight", "attn_k.weight")):
                bits = interleaved(bits, shape["head_dim"])
            bits.tofile(f)
            f.write(bytes(-f.tell() % ALIGNMENT))


def interleaved(rows, head_dim):
    """Rows of a head in the order that llama.cpp rotates: each pair side by side, not half a head apart."""
    heads = rows.reshape(-1, 2, head_dim // 2, rows.shape[1])
    return np.ascontiguousarray(heads.swapaxes(1, 2)).reshape(rows.shape)


def string(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def aligned(size):
    return -(-size // ALIGNMENT) * ALIGNMENT
