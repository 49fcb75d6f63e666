"""Makes the weights of a quantized checkpoint continuous again: noised.py SOURCE DIR. Needs numpy.

SOURCE is an exported checkpoint whose matrices lie on a grid: SmolLM2-135M-Instruct from its Q4_1 file, dequantized to
f16. Such a model flatters every format with the same grid. Uniform noise of one step of its own grid is added to each
element, with a fixed seed; the result is a bf16 checkpoint.
"""

import json
import os
import shutil
import struct
import sys

import numpy as np

SEED = 5
GROUP = 32  # of Q4_1 and Q8_0


def read(path):
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(n))
        header.pop("__metadata__", None)
        for name, t in header.items():
            begin, end = t["data_offsets"]
            f.seek(8 + n + begin)
            dtype = {"F16": np.float16, "F32": np.float32}[t["dtype"]]
            yield name, np.frombuffer(f.read(end - begin), dtype).astype(np.float32).reshape(t["shape"])


def bf16(x):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def noised(name, x, random):
    if x.ndim != 2:
        return x
    groups = x.reshape(-1, GROUP)
    if "embed_tokens" in name:  # 8 bits, symmetric
        step = np.abs(groups).max(1, keepdims=True) / 127
    else:
        step = (groups.max(1, keepdims=True) - groups.min(1, keepdims=True)) / 15
    noise = random.random(groups.shape, np.float32) - np.float32(0.5)
    return (groups + noise * step).reshape(x.shape)


def main(source, folder):
    os.makedirs(folder, exist_ok=True)
    random = np.random.Generator(np.random.PCG64(SEED))
    files = sorted(f for f in os.listdir(source) if f.endswith(".safetensors"))
    tensors = sorted((t for f in files for t in read(os.path.join(source, f))), key=lambda t: t[0])
    header, at, data = {}, 0, []
    for name, x in tensors:
        data.append(bf16(noised(name, x, random)).tobytes())
        header[name] = {"dtype": "BF16", "shape": list(x.shape), "data_offsets": [at, at + len(data[-1])]}
        at += len(data[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for d in data:
            f.write(d)
    for name in os.listdir(source):
        if name.endswith((".json", ".txt", ".jinja", ".model")) and "index" not in name:
            shutil.copy(os.path.join(source, name), folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
