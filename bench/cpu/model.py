"""Makes the models that the benchmark runs: random weights in a published shape, as a checkpoint and as a GGUF file.

Both hold the same bf16 values, so each program quantizes the same weights by its own rules. What a shape is made of stands in
model_dense.py, model_moe.py, model_gptoss.py, model_gemma4.py, model_qwen35.py, model_deepseek.py and
model_nemotron.py. Each has

    SIZES             sizes by the name of a shape
    SMALL             the name of sizes that serve for comparing the programs' scores
    config(sizes)     config.json
    tensors(sizes)    a list of Tensor, in order
    keys(sizes)       of the GGUF file, behind the architecture's name; they replace what all shapes have
    ARCHITECTURE      by its name in GGUF
    MLX               whether mlx-lm is measured with it
    SKIPS             whether some layers have nothing to do for rows whose scores nobody wants
    FORMATS, TYPE     optional: of llama.cpp's files by the name of the peer, and of ingot's image; else run.py's
    RULES             optional: rules of ingot's image
    DEPTH             optional: a context at which state and time of a token are compared with a sixteenth of it
    tokenizer_keys(sizes)  optional: of the GGUF file's tokenizer; else it has none
    extra(sizes)      optional: names and float32 values of what only the GGUF file has

Needs numpy.
"""

import dataclasses
import json
import os
import struct
import typing

import numpy as np

import gguf

CONTEXT = 8192
PIECE = 1 << 24  # values that are drawn at a time
BF16, MXFP4 = "BF16", "MXFP4"
BOS, EOS = 256, 257


def normal(deviation, mean=0.0):
    """A way to draw values."""

    def draw(rng, n):
        drawn = rng.standard_normal(n, dtype=np.float32) * np.float32(deviation)
        return drawn + np.float32(mean) if mean else drawn

    return draw


def ones(_, n):
    return np.ones(n, np.float32)


@dataclasses.dataclass
class Part:
    """What becomes of a tensor in GGUF."""

    name: str
    dims: tuple
    of: typing.Callable = lambda values: values  # of bf16 bits, or of float32 where the part is that
    f32: bool = False


@dataclasses.dataclass
class Tensor:
    name: str  # as published
    dims: tuple
    draw: typing.Callable  # float32 values of a generator and a number of them; codes and scales if the kind is MXFP4
    parts: list
    kind: str = BF16

    def stored(self):
        """Names, types, dims and bytes in a checkpoint. mxfp4 is as OpenAI publishes it."""
        n = int(np.prod(self.dims))
        if self.kind == BF16:
            return [(self.name, "BF16", self.dims, 2 * n)]
        groups = (*self.dims[:-1], self.dims[-1] // 32)
        return [(self.name + "_blocks", "U8", (*groups, 16), n // 2), (self.name + "_scales", "U8", groups, n // 32)]


def tensor(name, to, dims, draw, f32=None):
    """A tensor that is the same in GGUF. llama.cpp wants vectors in float32."""
    return Tensor(name, dims, draw, [Part(to, dims, f32=len(dims) == 1 if f32 is None else f32)])


def matrix(name, to, *dims, f32=False):
    """A matrix whose products are about as large as what is multiplied."""
    return tensor(name, to, dims, normal(dims[-1] ** -0.5), f32)


def parameters(shape, sizes):
    return sum(int(np.prod(t.dims)) for t in shape.tensors(sizes))


def values(shape, sizes):
    """Each tensor with its values as bf16 bits, which are the upper half of float32, or its codes and scales."""
    rng = np.random.default_rng(1)
    for t in shape.tensors(sizes):
        n = int(np.prod(t.dims))
        if t.kind == MXFP4:
            yield t, [part.reshape(dims) for part, (_, _, dims, _) in zip(t.draw(rng, n), t.stored(), strict=True)]
            continue
        bits = np.empty(n, "<u2")
        for at in range(0, n, PIECE):
            some = min(PIECE, n - at)
            bits[at : at + some] = t.draw(rng, some).view(np.uint32) >> 16
        yield t, bits.reshape(t.dims)


def blocks(codes, scales):
    """GGUF's blocks of mxfp4: the scale, then the codes of the first half of a group in lower halves of bytes, those of the
    second half in upper ones. In checkpoints pairs of codes share a byte."""
    out = np.empty((*scales.shape, 17), np.uint8)
    out[..., 0] = scales
    low, high = codes & 15, codes >> 4
    out[..., 1::2] = low[..., :8] | low[..., 8:] << 4
    out[..., 2::2] = high[..., :8] | high[..., 8:] << 4
    return out


def vocabulary(size):
    """Bytes, two special tokens and made-up words."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = [chr(b) if b in printable else chr(0x100 + b - sum(p < b for p in printable)) for b in range(256)]
    return [*letters, "<s>", "</s>", *("\u0120t" + str(i) for i in range(size - 258))]


def tokenizer(vocab):
    """A tokenizer.json of these words: enough for turning ids into text."""
    words = vocabulary(vocab)
    special = [{"id": i, "content": words[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for i in (BOS, EOS)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
        "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": {w: i for i, w in enumerate(words)}, "merges": []},
    }


def write_checkpoint(shape, sizes, folder):
    os.makedirs(folder, exist_ok=True)
    common = {
        "vocab_size": sizes["vocab"], "hidden_size": sizes["hidden"], "num_hidden_layers": sizes["layers"], "num_attention_heads": sizes["heads"],
        "num_key_value_heads": sizes["kv_heads"], "head_dim": sizes["head_dim"], "max_position_embeddings": CONTEXT, "torch_dtype": "bfloat16",
        "bos_token_id": BOS, "eos_token_id": EOS,
    }
    files = {
        "config.json": common | shape.config(sizes),
        "tokenizer.json": tokenizer(sizes["vocab"]),
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "clean_up_tokenization_spaces": False},
    }
    for name, value in files.items():
        with open(os.path.join(folder, name), "w") as f:
            json.dump(value, f)
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for t in shape.tensors(sizes):
        for name, kind, dims, size in t.stored():
            header[name] = {"dtype": kind, "shape": list(dims), "data_offsets": [at, at + size]}
            at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t, bits in values(shape, sizes):
            for part in bits if t.kind == MXFP4 else [bits]:
                part.tofile(f)


def write_gguf(shape, sizes, path):
    own = shape.keys(sizes)
    replaced = {name for name, _, _ in own}
    keys = [
        ("general.architecture", gguf.STRING, shape.ARCHITECTURE), ("general.name", gguf.STRING, "random"),
        *getattr(shape, "tokenizer_keys", lambda sizes: [("tokenizer.ggml.model", gguf.STRING, "none")])(sizes),
        *((f"{shape.ARCHITECTURE}.{name}", kind, value) for name, kind, value in [
            ("vocab_size", gguf.UINT32, sizes["vocab"]), ("context_length", gguf.UINT32, CONTEXT), ("embedding_length", gguf.UINT32, sizes["hidden"]),
            ("block_count", gguf.UINT32, sizes["layers"]), ("attention.head_count", gguf.UINT32, sizes["heads"]),
            ("attention.head_count_kv", gguf.UINT32, sizes["kv_heads"]),
        ] if name not in replaced),
        *((f"{shape.ARCHITECTURE}.{name}", kind, value) for name, kind, value in own),
    ]
    extra = getattr(shape, "extra", lambda sizes: [])(sizes)  # float32 tensors that checkpoints do without
    kind = lambda t, p: gguf.MXFP4 if t.kind == MXFP4 else gguf.F32 if p.f32 else gguf.BF16  # noqa: E731
    every = [(p.name, p.dims, kind(t, p)) for t in shape.tensors(sizes) for p in t.parts] + [(name, v.shape, gguf.F32) for name, v in extra]

    def contents():
        for t, bits in values(shape, sizes):
            for p in t.parts:
                if t.kind == MXFP4:
                    yield blocks(*(p.of(part) for part in bits))
                    continue
                whole = (bits.astype("<u4") << 16).view("<f4") if p.f32 else bits
                yield np.ascontiguousarray(p.of(whole)).reshape(p.dims).astype("<f4" if p.f32 else "<u2", copy=False)
        for _, v in extra:
            yield v.astype("<f4")

    gguf.write(path, keys, every, contents())
