"""Records the cases of mlx/testdata: what each operation of the binding returns in the official package.

The modules beside this one register operations with op and call case for each golden. ops.py imports them in one order,
which fixes the random numbers and the names of the tensors.
"""

import json
import pathlib
import struct

import mlx.core as mx
import numpy as np

OUT = pathlib.Path(__file__).resolve().parents[3] / "mlx" / "testdata"
F32, F16, BF16, F64 = mx.float32, mx.float16, mx.bfloat16, mx.float64
I8, I16, I32, I64 = mx.int8, mx.int16, mx.int32, mx.int64
U8, U16, U32, U64 = mx.uint8, mx.uint16, mx.uint32, mx.uint64
FLOATS = [F32, F16, BF16]
INTS = [I8, I16, I32, I64, U8, U16, U32, U64]
HEADER = {mx.bool_: "BOOL", U8: "U8", U16: "U16", U32: "U32", U64: "U64", I8: "I8", I16: "I16", I32: "I32", I64: "I64",
          F16: "F16", F32: "F32", F64: "F64", BF16: "BF16"}

INF, NAN = float("inf"), float("nan")
SUM, LIBM, ORDER, FORMAT, ONCE = "sum", "libm", "order", "format", "once"
STEPS = "steps"

OPS = {}      # name -> function of the Go arguments
RELAX = {}    # name -> rule for results in floating point
cases = []
tensors = {}  # (type, shape, bytes) -> name


def op(name, f, relax=None):
    OPS[name] = f
    RELAX[name] = relax


def raw(a):
    mx.eval(a)
    if a.dtype == BF16:
        return np.array(a.reshape(-1).view(U16)).tobytes()
    return np.array(a).tobytes()


def store(a):
    key = (HEADER[a.dtype], a.shape, raw(a))
    return tensors.setdefault(key, f"t{len(tensors)}")


def encode(v):
    if isinstance(v, mx.array):
        return store(v)
    if isinstance(v, mx.Dtype):
        return str(v).removeprefix("mlx.core.").rstrip("_")
    if isinstance(v, (list, tuple)):
        return [encode(e) for e in v]
    if isinstance(v, float) and not np.isfinite(v):
        return str(v)
    return v


def case(name, *args, relax=None):
    out = OPS[name](*args)
    out = list(out) if isinstance(out, (list, tuple)) else [out]
    c = {"op": name, "args": encode(args), "out": encode(out)}
    relax = relax or RELAX[name]
    if relax and (relax in (ORDER, FORMAT) or any(mx.issubdtype(o.dtype, mx.floating) for o in out)):
        c["relax"] = relax
    cases.append(c)
    return out


rng = np.random.default_rng(20240607)


def normal(*shape, dtype=F32, scale=1.0):
    return mx.array((rng.standard_normal(shape) * scale).astype(np.float32)).astype(dtype)


def integers(low, high, *shape, dtype=I32):
    return mx.array(rng.integers(low, high, shape)).astype(dtype)


def arr(v, dtype=F32):
    return mx.array(v, dtype=dtype)


def empty(*shape, dtype=F32):
    return mx.zeros(shape, dtype)


def gelu(x):
    x = x.astype(F32) if x.dtype == mx.bool_ else x
    return x * (1 + mx.erf(x * arr(0.5**0.5, x.dtype))) / 2


def gelu_tanh(x):
    x = x.astype(F32) if x.dtype == mx.bool_ else x
    return x * (1 + mx.tanh((x + 0.044715 * x * x * x) * (2 / np.pi)**0.5)) / 2


def write():
    header, blobs, offset = {}, [], 0
    for (dtype, shape, data), name in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + len(data)]}
        blobs.append(data)
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    OUT.mkdir(exist_ok=True)
    (OUT / "ops.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    (OUT / "ops.json").write_text(f"[\n{lines}\n]\n")
