"""Writes the files of safetensors/testdata with the official library.

  python.safetensors   written by the library: every type that it writes, a scalar, empty tensors, names that need
                       escapes, one metadata key (with more, the library's order is random)
  written.safetensors  what the Go writer must write for all types, built here by the format's description and read back
                       with the library
  *.json               contents of each: metadata, and name, dtype, shape and data (hex) in data order
"""

import ctypes
import json
import math
import pathlib

import safetensors
from safetensors import TensorSpec, deserialize, serialize

OUT = pathlib.Path(__file__).resolve().parents[3] / "safetensors" / "testdata"

# Header name -> (the library's name, or None if it cannot write the type; bits per element).
DTYPES = {
    "BOOL": ("bool", 8),
    "F4": ("float4_e2m1fn_x2", 4),
    "F6_E2M3": (None, 6),
    "F6_E3M2": (None, 6),
    "U8": ("uint8", 8),
    "I8": ("int8", 8),
    "F8_E5M2": ("float8_e5m2", 8),
    "F8_E4M3": ("float8_e4m3fn", 8),
    "F8_E8M0": ("float8_e8m0fnu", 8),
    "F8_E4M3FNUZ": ("float8_e4m3fnuz", 8),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", 8),
    "I16": ("int16", 16),
    "U16": ("uint16", 16),
    "F16": ("float16", 16),
    "BF16": ("bfloat16", 16),
    "I32": ("int32", 32),
    "U32": ("uint32", 32),
    "F32": ("float32", 32),
    "C64": ("complex64", 64),
    "F64": ("float64", 64),
    "I64": ("int64", 64),
    "U64": ("uint64", 64),
}


def tensor(name, dtype, shape, seed):
    size, rest = divmod(math.prod(shape) * DTYPES[dtype][1], 8)
    assert rest == 0, name
    data = bytes((seed * 37 + i * 11) % 256 for i in range(size))
    if dtype == "BOOL":
        data = bytes(b & 1 for b in data)
    return {"name": name, "dtype": dtype, "shape": shape, "data": data}


def tensors(writable):
    kinds = [d for d, (write, _) in DTYPES.items() if write or not writable]
    all_ = [tensor("t." + d, d, [2, 4], i) for i, d in enumerate(kinds)]
    return all_ + [
        tensor("scalar", "F32", [], 50),
        tensor("one", "BF16", [1, 1, 1], 51),
        tensor("empty", "F16", [0], 52),
        tensor("empty.rows", "F32", [3, 0, 5], 53),
        tensor('escapes "\\/\b\f\n\r\t\x01\x7f', "U8", [3], 54),
        tensor("größe.重み.\U0001f4a1.\u2028<&>", "U8", [2], 55),
    ]


def by_library(items, metadata):
    specs, keep = {}, []
    for t in items:
        shape = list(t["shape"])
        if t["dtype"] == "F4":
            shape[-1] //= 2  # the library takes two elements per byte
        buffer = ctypes.create_string_buffer(t["data"], max(1, len(t["data"])))
        keep.append(buffer)
        specs[t["name"]] = TensorSpec(
            dtype=DTYPES[t["dtype"]][0], shape=shape, data_ptr=ctypes.addressof(buffer), data_len=len(t["data"])
        )
    return serialize(specs, metadata)


def by_description(items, metadata):
    """Builds a file: tensors in the order given, sorted metadata, no spaces, data at a multiple of 64 bytes."""
    header, data = {"__metadata__": dict(sorted(metadata.items()))}, b""
    for t in items:
        begin = len(data)
        data += t["data"]
        header[t["name"]] = {"dtype": t["dtype"], "shape": t["shape"], "data_offsets": [begin, len(data)]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    return len(text).to_bytes(8, "little") + text + data


def check(file, items):
    """Requires that the library reads the same items back."""
    got = {name: t for name, t in deserialize(file)}
    assert got.keys() == {t["name"] for t in items}
    for t in items:
        g = got[t["name"]]
        assert (g["dtype"], list(g["shape"]), bytes(g["data"])) == (t["dtype"], t["shape"], t["data"]), t["name"]


def save(stem, file, items, metadata):
    check(file, items)
    size = int.from_bytes(file[:8], "little")
    header = json.loads(file[8 : 8 + size])
    assert header["__metadata__"] == metadata
    order = {name: i for i, name in enumerate(header)}
    listed = [{**t, "data": t["data"].hex()} for t in sorted(items, key=lambda t: order[t["name"]])]
    (OUT / f"{stem}.safetensors").write_bytes(file)
    text = json.dumps({"metadata": metadata, "tensors": listed}, indent=1, ensure_ascii=True)
    (OUT / f"{stem}.json").write_text(text + "\n")


def main():
    assert safetensors.__version__.startswith("0.8."), safetensors.__version__
    OUT.mkdir(parents=True, exist_ok=True)
    one = {"format": "pt"}
    several = {"quant_type": "int4", "group_size": "64", "Größe": "\"quoted\"\n", "": "empty key"}
    save("python", by_library(tensors(True), one), tensors(True), one)
    save("written", by_description(tensors(False), several), tensors(False), several)


main()
