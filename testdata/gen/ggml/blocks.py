"""Writes the grids of the IQ types, and digests of what the gguf package decodes from generated blocks.

    python testdata/gen/ggml/blocks.py

Writes quantize/ggml/grids.bin and quantize/ggml/testdata/decoded.json. Needs gguf==0.19.0 and numpy==2.4.6.
"""

import hashlib
import json
import pathlib

import gguf
import numpy as np
from gguf import quants

ROOT = pathlib.Path(__file__).resolve().parents[3] / "quantize" / "ggml"
BLOCKS = 2048
# Zeros, the smallest and largest subnormal numbers, the largest number, infinities and NaNs of float16.
HALVES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x7BFF, 0x7C00, 0xFC00, 0x7C01, 0xFE00]
TYPES = """Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S IQ1_S IQ1_M IQ4_NL
IQ4_XS TQ1_0 TQ2_0 MXFP4 NVFP4""".split()


def noise(seed: int, n: int) -> np.ndarray:
    """n bytes of the splitmix64 sequence that starts at seed. TestDecode makes the same ones."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, n // 8 + 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return z.astype("<u8").view(np.uint8)[:n].copy()


def blocks(number: int, size: int) -> np.ndarray:
    """Random bytes, whose scales are NaN at times, then blocks of one repeated byte each, then a random block with each of HALVES at each
    even place, one of which is the scale.
    """
    constant = [np.full(size, byte, np.uint8) for byte in range(256)]
    special = []
    for half in HALVES:
        for at in range(0, size - 1, 2):
            block = noise(number, size)
            block[at : at + 2] = half & 255, half >> 8
            special.append(block)
    return np.concatenate([noise(number, BLOCKS * size), *constant, *special])


def decoded(name: str) -> dict:
    kind = gguf.GGMLQuantizationType[name]
    size = gguf.GGML_QUANT_SIZES[kind][1]
    with np.errstate(invalid="ignore", over="ignore"):
        values = quants.dequantize(blocks(int(kind), size), kind).astype("<f4")
    bits = values.view("<u4").copy()
    bits[np.isnan(values)] = 0x7FC00000
    return {"type": name, "elements": int(bits.size), "sha256": hashlib.sha256(bits.tobytes()).hexdigest()}


def grid(name: str) -> bytes:
    cls = getattr(quants, name)
    cls.init_grid()
    return np.asarray(cls.grid).reshape(cls.grid_shape).astype(np.int8).tobytes()


def main() -> None:
    names = ["IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S"]
    (ROOT / "grids.bin").write_bytes(b"".join(grid(name) for name in names))
    (ROOT / "testdata").mkdir(exist_ok=True)
    text = json.dumps([decoded(name) for name in TYPES], indent=1)
    (ROOT / "testdata" / "decoded.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
