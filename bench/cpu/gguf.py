"""Writes GGUF files, version 3: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Needs numpy."""

import struct

import numpy as np

UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
PACK = {UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}
F32, BF16, MXFP4 = 0, 30, 39
ALIGNMENT = 32


def write(path, keys, every, values):
    """keys are (name, type, value); a list of values makes an array. every are (name, dims, type) of tensors, and values gives
    their contents in the same order: float32, bf16 bits, or blocks of mxfp4."""
    with open(path, "wb") as f:
        f.write(b"GGUF" + struct.pack("<IQQ", 3, len(every), len(keys)))
        for key, kind, value in keys:
            f.write(string(key))
            if isinstance(value, list):
                f.write(struct.pack("<IIQ", ARRAY, kind, len(value)) + b"".join(scalar(kind, v) for v in value))
            else:
                f.write(struct.pack("<I", kind) + scalar(kind, value))
        at = 0
        for name, dims, kind in every:
            f.write(string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *reversed(dims), kind, at))
            at += -(-size(int(np.prod(dims)), kind) // ALIGNMENT) * ALIGNMENT
        f.write(bytes(-f.tell() % ALIGNMENT))
        for content in values:
            content.tofile(f)
            f.write(bytes(-f.tell() % ALIGNMENT))


def size(elements, kind):
    """The bytes of elements of a type."""
    return elements // 32 * 17 if kind == MXFP4 else elements * (4 if kind == F32 else 2)


def scalar(kind, value):
    return string(value) if kind == STRING else struct.pack(PACK[kind], value)


def string(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()
