"""Writes digests of what ggml itself decodes from generated blocks, for types that the gguf package does not decode.

    python testdata/gen/ggml/recent.py LIBRARY

LIBRARY is libggml-base.so of llama.cpp v0.5.0 or later, for instance of the npm package @node-llama-cpp/linux-x64.
Writes quantize/ggml/testdata/recent.json. Needs gguf==0.19.0 and numpy==2.4.6.
"""

import ctypes
import hashlib
import json
import sys

import numpy as np

from blocks import ROOT, blocks

TYPES = {"Q1_0": 41, "Q2_0": 42}  # as in ggml.h


def decoded(library: ctypes.CDLL, name: str, number: int) -> dict:
    elements, size = library.ggml_blck_size(number), library.ggml_type_size(number)
    raw = blocks(number, size)
    values = np.empty(len(raw) // size * elements, np.float32)
    rows = getattr(library, f"dequantize_row_{name.lower()}")
    rows(raw.ctypes.data_as(ctypes.c_void_p), values.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(values.size))
    bits = values.view("<u4").copy()
    bits[np.isnan(values)] = 0x7FC00000
    return {"type": name, "elements": int(bits.size), "sha256": hashlib.sha256(bits.tobytes()).hexdigest()}


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    library.ggml_blck_size.restype, library.ggml_type_size.restype = ctypes.c_int64, ctypes.c_size_t
    text = json.dumps([decoded(library, name, number) for name, number in TYPES.items()], indent=1)
    (ROOT / "testdata" / "recent.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
