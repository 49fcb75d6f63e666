#!/usr/bin/env python3
"""Writes mlx/testdata/ops.safetensors and ops.json: what each operation of mlx/bridge/ops.txt gives in the official package.

Needs mlx 0.32.4 and numpy. Run from the repository's root: python3 testdata/gen/mlx_ops.py

ops.json holds one case per line: the operation, its arguments in the order of ops.txt, and its results. Arrays are names
of tensors in ops.safetensors; equal inputs are stored once. "relax" is absent where a result must be equal bit for bit;
else it names a rule of mlx/ops_test.go.
"""
import itertools
import json
import pathlib
import struct

import mlx.core as mx
import numpy as np

OUT = pathlib.Path("mlx/testdata")
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


# Element-wise, one argument.
OFF_EDGES = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.14159, -7.25, 60.0, -60.0, 1e-3, 1e4, INF, -INF, NAN]
X = arr(OFF_EDGES).reshape(3, 6)
POSITIVE = arr([0.0, 1e-3, 0.25, 0.5, 1.0, 2.0, 3.5, 100.0, 6e4, INF]).reshape(2, 5)

for name, f, relax in [
    ("Abs", mx.abs, None), ("Negative", mx.negative, None), ("Sign", mx.sign, None), ("Reciprocal", mx.reciprocal, LIBM),
    ("Square", mx.square, None), ("Sqrt", mx.sqrt, LIBM), ("Rsqrt", mx.rsqrt, LIBM), ("Exp", mx.exp, LIBM),
    ("Expm1", mx.expm1, LIBM), ("Log", mx.log, LIBM), ("Log1p", mx.log1p, LIBM), ("Sin", mx.sin, LIBM),
    ("Cos", mx.cos, LIBM), ("Tanh", mx.tanh, LIBM), ("Erf", mx.erf, LIBM), ("Sigmoid", mx.sigmoid, ONCE),
    ("SiLU", lambda x: x * mx.sigmoid(x), ONCE), ("GELU", lambda x: gelu(x), ONCE), ("GELUTanh", lambda x: gelu_tanh(x), ONCE),
    ("Softplus", lambda x: mx.logaddexp(x, arr(0.0, x.dtype)), LIBM),
    ("Floor", mx.floor, None), ("Ceil", mx.ceil, None), ("IsFinite", mx.isfinite, None), ("IsNaN", mx.isnan, None),
    ("LogicalNot", mx.logical_not, None), ("StopGradient", mx.stop_gradient, None),
    ("ZerosLike", mx.zeros_like, None), ("Contiguous", mx.contiguous, None), ("Copy", lambda x: x, None),
]:
    op(name, f, relax)
    x = POSITIVE if name in ("Sqrt", "Rsqrt", "Log", "Log1p") else X
    for d in FLOATS:
        case(name, x.astype(d))
    case(name, empty(0, 3))
    case(name, arr(0.75))
    case(name, arr([1, 0, 1]).astype(mx.bool_)) if name not in ("Negative", "Abs", "Sign", "ZerosLike") else None
for name in ["Abs", "Negative", "Sign", "Square", "Exp", "Floor", "LogicalNot", "IsFinite", "Copy"]:
    for d in INTS:
        case(name, integers(0 if mx.issubdtype(d, mx.unsignedinteger) else -5, 6, 4, dtype=d))
case("Abs", arr([-2**31, 2**31 - 1], I32))
case("Sin", arr([0.5, -2.0], F64))
case("Exp", arr([0.5, -2.0], F64))

op("Round", lambda x, decimals: mx.round(x, decimals))
for d, n in itertools.product(FLOATS, [0, 2, -1]):
    case("Round", arr([0.5, 1.5, -2.5, 3.14159, 15.0, -24.7, 0.125]).astype(d), n, relax=LIBM if n else None)
case("Round", arr([14, 15, -26], I32), -1)

op("AsType", lambda x, to: x.astype(to))
SMALL = arr([0.0, 1.0, 2.75, 100.0, 3.0])
for d in FLOATS + INTS + [F64, mx.bool_]:
    case("AsType", SMALL, d)
    case("AsType", SMALL.astype(d), F32)
case("AsType", arr([1.00390625, 1.01171875, -3.3895e38, 1e-40, NAN]), BF16)
case("AsType", arr([65504.0, 65520.0, 1e-7, 6e-8]), F16)
case("AsType", empty(0), I8)

op("View", lambda x, to: x.view(to))
case("View", normal(2, 4), U32)
case("View", normal(2, 4), U8)
case("View", normal(2, 4, dtype=BF16), F32)
case("View", arr([[1, 2, 3, 4, 5, 6, 7, 8]], U8), U64)
case("View", empty(3, 0), U16)

# Element-wise with a number.
for name, f in [("AddScalar", mx.add), ("MultiplyScalar", mx.multiply), ("MaximumScalar", mx.maximum), ("MinimumScalar", mx.minimum),
                ("PowerScalar", mx.power)]:
    op(name, lambda x, v, f=f: f(x, arr(v, x.dtype)), LIBM if name == "PowerScalar" else None)
    for d in FLOATS:
        case(name, normal(2, 3, dtype=d), 2.0)
        case(name, mx.abs(normal(2, 3, dtype=d)), 0.3)
    case(name, integers(-5, 6, 2, 3), 3.0)
    case(name, integers(0, 6, 4, dtype=U8), 2.0)
    case(name, empty(2, 0), 1.0)
    case(name, arr(1.5), 2.0)
case("MaximumScalar", X, -INF)
case("MinimumScalar", X, INF)
case("AddScalar", arr([1, 2], I32), 16777217.0)  # a float32 would make 16777216 of it
op("Softcap", lambda x, v: mx.tanh(x * arr(1.0 / v, x.dtype)) * arr(v, x.dtype), ONCE)
for d, v in itertools.product(FLOATS, [30.0, 50.0]):
    case("Softcap", normal(3, 4, dtype=d, scale=40), v)

# Element-wise, two and three arguments.
FINITE = arr([[1.5, -2.0, 0.25], [3.0, 7.0, -0.5]])
for name, f, relax in [
    ("Add", mx.add, None), ("Subtract", mx.subtract, None), ("Multiply", mx.multiply, None), ("Divide", mx.divide, LIBM),
    ("FloorDivide", mx.floor_divide, LIBM), ("Remainder", mx.remainder, LIBM), ("Power", mx.power, LIBM), ("Maximum", mx.maximum, None),
    ("Minimum", mx.minimum, None), ("LogAddExp", mx.logaddexp, LIBM), ("Equal", mx.equal, None), ("NotEqual", mx.not_equal, None),
    ("Less", mx.less, None), ("LessEqual", mx.less_equal, None), ("Greater", mx.greater, None),
    ("GreaterEqual", mx.greater_equal, None), ("LogicalAnd", mx.logical_and, None), ("LogicalOr", mx.logical_or, None),
]:
    op(name, f, relax)
    base = mx.abs(FINITE) if name == "Power" else FINITE
    for d in FLOATS:
        case(name, base.astype(d), arr([[2.0, 3.0, -0.5]]).astype(d))
    case(name, base, arr([[2.0], [3.0]], BF16))        # broadcast and promote
    case(name, base.astype(F16), arr([2, 3, 1], I32))  # an integer does not widen
    case(name, arr(1.25), arr([[2.0, 1.25]]))
    case(name, empty(0, 3), FINITE[:1])
    for d in [I8, I32, U8, U32, I64]:
        case(name, integers(1, 8, 2, 3, dtype=d), integers(1, 4, 3, dtype=d))
    if name not in ("Power", "Divide", "LogAddExp"):
        case(name, arr([-7, 7, -7, 7], I32), arr([2, -2, -2, 2], I32))
    if name in ("Maximum", "Minimum", "Equal", "NotEqual", "Less"):
        case(name, arr([NAN, 1.0, INF, -0.0]), arr([1.0, NAN, INF, 0.0]))
case("Divide", arr([1, 2, 7], I32), arr([2, 0, 2], I32))
case("FloorDivide", arr([1.0, -1.0, 0.0]), arr([0.0, 0.0, 0.0]))
case("Power", arr([2, 3, -2], I32), arr([10, 0, 3], I32))

for name, f in [("BitwiseAnd", mx.bitwise_and), ("BitwiseOr", mx.bitwise_or), ("BitwiseXor", mx.bitwise_xor),
                ("LeftShift", mx.left_shift), ("RightShift", mx.right_shift)]:
    op(name, f)
    for d in INTS:
        case(name, integers(0, 100, 2, 4, dtype=d), arr([[1], [3]], d))
    case(name, arr([-7, 12], I32), arr([2, 1], I32))
    case(name, empty(0, dtype=U32), arr(1, U32))
case("BitwiseAnd", arr([True, True, False]).astype(mx.bool_), arr([True, False, False]).astype(mx.bool_))

op("Where", mx.where)
COND = arr([[1, 0, 1], [0, 0, 1]]).astype(mx.bool_)
for d in FLOATS + [I32, U8, mx.bool_]:
    case("Where", COND, integers(0, 5, 2, 3, dtype=d), integers(0, 5, 1, 3, dtype=d))
case("Where", COND, FINITE, arr(-INF))
case("Where", arr(True).astype(mx.bool_), arr(1.0, BF16), FINITE)
case("Where", integers(0, 2, 3), FINITE, arr(0.0, F16))
case("Where", COND[:, :0], empty(2, 0), arr(0.0))

# Reductions.
AXES = [[], [0], [-1], [0, 2], [-2, -1]]
REDUCE = normal(2, 3, 4)
for name, f, relax in [("Sum", mx.sum, SUM), ("Mean", mx.mean, SUM), ("Var", mx.var, SUM), ("Prod", mx.prod, SUM), ("Max", mx.max, None),
                       ("Min", mx.min, None), ("AllOf", mx.all, None), ("AnyOf", mx.any, None), ("LogSumExp", mx.logsumexp, SUM)]:
    op(name, lambda x, keep, axes, f=f: f(x, axis=axes or None, keepdims=keep), relax)
    for axes, keep in itertools.product(AXES, [False, True]):
        case(name, REDUCE, keep, axes)
    for d in FLOATS[1:]:
        case(name, REDUCE.astype(d), False, [-1])
        case(name, REDUCE.astype(d), True, [])
    for d in [I32, U8, mx.bool_]:
        case(name, integers(0, 3, 2, 5, dtype=d), False, [1])
    case(name, arr(2.5), False, [])
    if name != "LogSumExp":  # which refuses empty arrays
        case(name, empty(0, 3), False, [1])
    if name not in ("Max", "Min", "LogSumExp"):  # which have no neutral element
        case(name, empty(2, 0), True, [-1])
case("Max", arr([[1.0, NAN], [-INF, 3.0]]), False, [1])
case("LogSumExp", arr([[-INF, -INF], [1000.0, 1000.0]]), False, [1])
case("Sum", normal(2, 500, dtype=BF16), False, [-1])

for name, f in [("ArgMax", mx.argmax), ("ArgMin", mx.argmin)]:
    op(name, lambda x, axis, keep, f=f: f(x, axis=axis, keepdims=keep))
    for axis, keep in itertools.product([0, 1, -1], [False, True]):
        case(name, REDUCE, axis, keep)
    for d in [BF16, F16, I32, U8]:
        case(name, integers(0, 4, 3, 7, dtype=d), -1, False)  # ties: the first

for name, f, relax in [("CumSum", mx.cumsum, SUM), ("CumProd", mx.cumprod, SUM)]:
    op(name, lambda x, axis, reverse, inclusive, f=f: f(x, axis=axis, reverse=reverse, inclusive=inclusive), relax)
    for axis, reverse, inclusive in itertools.product([0, -1], [False, True], [False, True]):
        case(name, REDUCE, axis, reverse, inclusive)
    for d in [BF16, F16, I32, U8]:
        case(name, integers(1, 4, 2, 4, dtype=d), 1, False, True)
    case(name, empty(2, 0), 1, False, True)

op("Softmax", lambda x, precise, axes: mx.softmax(x, axis=axes or None, precise=precise), SUM)
for d, precise, axes in itertools.product(FLOATS, [False, True], [[-1], [0]]):
    case("Softmax", normal(3, 9, dtype=d, scale=3), precise, axes)
case("Softmax", REDUCE, False, [])
case("Softmax", REDUCE, False, [0, 2])
case("Softmax", arr([[0.0, -INF], [1.0, INF]]), False, [-1])
case("Softmax", empty(2, 0), True, [-1])
case("Softmax", arr(3.0), True, [])

# Order.
op("Sort", lambda x, axis: mx.sort(x, axis=axis))
op("ArgSort", lambda x, axis: mx.argsort(x, axis=axis))
op("Partition", lambda x, kth, axis: mx.partition(x, kth, axis=axis), ORDER)
op("ArgPartition", lambda x, kth, axis: mx.argpartition(x, kth, axis=axis), ORDER)
op("TopK", lambda x, k, axis: mx.topk(x, k, axis=axis), ORDER)
for d in FLOATS + [I32, U8]:
    x = mx.array(rng.permutation(21).reshape(3, 7)).astype(d)  # no ties: permutations are unique
    for axis in [0, -1]:
        case("Sort", x, axis)
        case("ArgSort", x, axis)
    case("Partition", x, 3, -1)
    case("ArgPartition", x, 3, -1)
    case("TopK", x, 3, -1)
    case("Partition", x, -2, 1)
    case("ArgPartition", x, 0, 1)
    case("TopK", x, 7, 1)
op("Largest", lambda x, k: (lambda order: (mx.take_along_axis(x, order, -1), order))(mx.argsort(-x, axis=-1)[..., :k]))
for d, k in itertools.product(FLOATS, [1, 3, 7]):
    case("Largest", mx.array(rng.permutation(21).reshape(3, 7)).astype(d), k)
case("Largest", arr([[1.0, 5.0, 5.0, -INF, 5.0]]), 4)
case("Largest", arr([3, 1, 2], I32), 2)
case("Sort", arr([[3.0, NAN, -INF, INF, -0.5]]), 1)
for name in ["Sort", "ArgSort"]:
    case(name, empty(0, 3), 1)
    case(name, empty(3, 1), 1)

# Making arrays.
op("Arange", lambda start, stop, step, d: mx.arange(start, stop, step, dtype=d))
for d in FLOATS + INTS:
    case("Arange", 0.0, 9.0, 2.0, d)
case("Arange", 5.0, -2.0, -1.5, F32)
case("Arange", 3.0, 3.0, 1.0, I32)
case("Arange", 16777215.0, 16777219.0, 1.0, I32)
op("Full", lambda v, d, shape: mx.full(shape, arr(v, d), dtype=d))
op("Zeros", lambda d, shape: mx.zeros(shape, d))
op("Ones", lambda d, shape: mx.ones(shape, d))
for d in FLOATS + INTS + [mx.bool_, F64]:
    case("Full", 3.0, d, [2, 3])
    case("Zeros", d, [3])
    case("Ones", d, [1, 2])
for shape in [[], [0], [2, 0, 3]]:
    case("Full", -INF, F32, shape)
    case("Zeros", I32, shape)
    case("Ones", BF16, shape)
case("Full", 0.1, F64, [1])
case("Full", 16777217.0, I32, [1])
op("Eye", lambda n, m, k, d: mx.eye(n, m, k, d))
op("Tri", lambda n, m, k, d: mx.tri(n, m, k, d))
op("Tril", lambda x, k: mx.tril(x, k))
op("Triu", lambda x, k: mx.triu(x, k))
for n, m, k in [(3, 3, 0), (2, 4, 1), (4, 2, -1), (3, 3, 9), (0, 2, 0)]:
    case("Eye", n, m, k, BF16)
    case("Tri", n, m, k, I32)
    case("Tril", normal(n, m), k)
    case("Triu", normal(n, m, dtype=F16), k)
case("Tri", 3, 3, 0, mx.bool_)
case("Tril", REDUCE, -1)

# Shape.
op("Reshape", lambda x, shape: mx.reshape(x, shape))
case("Reshape", REDUCE, [4, 6])
case("Reshape", REDUCE, [-1])
case("Reshape", REDUCE, [2, -1, 2])
case("Reshape", arr(1.0), [1, 1])
case("Reshape", arr([7.0]), [])
case("Reshape", empty(0, 4), [2, 0])
op("Flatten", lambda x, a, b: mx.flatten(x, a, b))
for a, b in [(0, -1), (1, 2), (-3, -2), (1, 1)]:
    case("Flatten", REDUCE, a, b)
case("Flatten", arr(1.0), 0, 0)
op("Transpose", lambda x, axes: mx.transpose(x, axes or None))
for axes in [[], [1, 0, 2], [-1, 0, 1]]:
    case("Transpose", REDUCE, axes)
    case("Transpose", REDUCE.astype(BF16), axes)
case("Transpose", arr(1.0), [])
op("SwapAxes", lambda x, a, b: mx.swapaxes(x, a, b))
op("MoveAxis", lambda x, a, b: mx.moveaxis(x, a, b))
for a, b in [(0, 2), (-1, 0), (1, 1)]:
    case("SwapAxes", REDUCE, a, b)
    case("MoveAxis", REDUCE, a, b)
op("ExpandDims", lambda x, axes: mx.expand_dims(x, axes))
for axes in [[0], [-1], [0, 2], [1, -1]]:
    case("ExpandDims", FINITE, axes)
op("Squeeze", lambda x, axes: mx.squeeze(x, axes))
for axes in [[0], [-1], [0, 2, -1]]:
    case("Squeeze", normal(1, 3, 1, 2, 1), axes)
op("BroadcastTo", lambda x, shape: mx.broadcast_to(x, shape))
case("BroadcastTo", arr([[1.0], [2.0]]), [3, 2, 2])
case("BroadcastTo", arr(1, I8), [2, 0])
case("BroadcastTo", FINITE, [2, 3])
op("Concatenate", lambda axis, xs: mx.concatenate(xs, axis=axis))
op("Stack", lambda axis, xs: mx.stack(xs, axis=axis))
for axis in [0, 1, -1]:
    case("Concatenate", axis, [FINITE, FINITE.astype(BF16), FINITE])
    case("Stack", axis, [FINITE, FINITE * 2])
case("Concatenate", 0, [integers(0, 9, 2, 3), empty(0, 3, dtype=I32), integers(0, 9, 1, 3)])
case("Concatenate", 0, [arr([1], U8), arr([-1], I8)])
case("Stack", 0, [arr(1.0), arr(2.0)])
op("Split", lambda x, axis, at: mx.split(x, at, axis=axis))
case("Split", REDUCE, -1, [1, 3])
case("Split", REDUCE, 1, [0, 2])
case("Split", REDUCE, 0, [1])
case("Split", REDUCE, 0, [5])
op("SplitEven", lambda x, parts, axis: mx.split(x, parts, axis=axis))
case("SplitEven", REDUCE, 2, -1)
case("SplitEven", REDUCE, 3, 1)
case("SplitEven", REDUCE, 1, 0)
op("Repeat", lambda x, n, axis: mx.repeat(x, n, axis=axis))
for n, axis in [(2, 0), (3, -1), (1, 1), (0, 0)]:
    case("Repeat", FINITE, n, axis)
op("Tile", lambda x, reps: mx.tile(x, reps))
for reps in [[2], [2, 1], [2, 1, 3], [0]]:
    case("Tile", FINITE, reps)
op("Pad", lambda x, low, high, v: mx.pad(x, list(zip(low, high)), constant_values=arr(v, x.dtype)))
case("Pad", FINITE, [1, 0], [0, 2], -INF)
case("Pad", FINITE.astype(BF16), [0, 0], [0, 0], 1.0)
case("Pad", integers(0, 9, 3), [2], [1], 7.0)
case("Pad", empty(0, 2), [1, 0], [1, 0], 2.0)
op("Roll", lambda x, shift, axis: mx.roll(x, shift, axis))
for shift, axis in [(1, 0), (-1, -1), (5, 1), (0, 0)]:
    case("Roll", FINITE, shift, axis)
case("Contiguous", mx.transpose(FINITE))
case("Copy", mx.transpose(FINITE))


# Slices.
def static(start, stop, step):
    return tuple(slice(*s) for s in zip(start, stop, step))


def slice_update(x, update, start, stop, step):
    y = mx.array(x)
    y[static(start, stop, step)] = update
    return y


op("slice", lambda x, start, stop, step: x[static(start, stop, step)])
op("sliceUpdate", slice_update)
for start, stop, step in [([0, 1, 0], [2, 3, 4], [1, 1, 2]), ([1, 0, 0], [2, 3, 4], [1, 2, 3]), ([0, 0, 2], [2, 3, 2], [1, 1, 1])]:
    part = case("slice", REDUCE, start, stop, step)[0]
    case("slice", REDUCE.astype(BF16), start, stop, step)
    case("sliceUpdate", REDUCE, part * 10, start, stop, step)
    case("sliceUpdate", REDUCE, arr(9.0, BF16), start, stop, step)
case("sliceUpdate", integers(0, 9, 5), integers(10, 19, 2), [1], [4], [2])
op("SliceDynamic", lambda x, start, axes, size: mx.slice(x, start, axes, size))
op("SliceUpdateDynamic", lambda x, update, start, axes: mx.slice_update(x, update, start, axes))
case("SliceDynamic", REDUCE, arr([1, 2], I32), [1, 2], [2, 2, 2])
case("SliceDynamic", REDUCE, arr(1, I32), [-1], [1, 3, 2])
case("SliceDynamic", REDUCE.astype(BF16), arr([0], I32), [0], [2, 3, 4])
case("SliceUpdateDynamic", REDUCE, normal(2, 2, 2), arr([1, 2], I32), [1, 2])
case("SliceUpdateDynamic", REDUCE.astype(F16), normal(1, 3, 4, dtype=F16), arr(1, I32), [0])

# Indexing.
op("Take", lambda x, i, axis: mx.take(x, i, axis=axis))
for d in FLOATS + [I32, U8]:
    case("Take", integers(0, 99, 4, 3, dtype=d), arr([3, 0, 0], U32), 0)
case("Take", REDUCE, arr([[0, -1], [2, 1]], I32), 1)
case("Take", REDUCE, arr(2, I64), -1)
case("Take", REDUCE, arr([1], U8), 0)
case("Take", REDUCE, empty(0, dtype=I32), 0)


def scatter_add_axis(x, indices, values, axis):
    y = np.array(x)
    i, v = np.broadcast_arrays(np.array(indices), np.array(values))
    place = list(np.indices(i.shape, sparse=True))
    place[axis] = i
    np.add.at(y, tuple(place), v)
    return mx.array(y)


op("TakeAlongAxis", lambda x, i, axis: mx.take_along_axis(x, i, axis=axis))
op("PutAlongAxis", lambda x, i, v, axis: mx.put_along_axis(x, i, v, axis=axis))
op("ScatterAddAxis", scatter_add_axis)  # which Python does not offer: numpy's sum of the same numbers, exact here
case("TakeAlongAxis", REDUCE, integers(-4, 4, 2, 3, 2), -1)
case("TakeAlongAxis", REDUCE, integers(0, 3, 2, 1, 4, dtype=U32), 1)
case("TakeAlongAxis", REDUCE.astype(BF16), integers(0, 2, 1, 3, 4), 0)
case("PutAlongAxis", REDUCE, arr([[[3], [0], [1]], [[2], [2], [0]]], U32), arr(7.0), -1)
case("PutAlongAxis", REDUCE, arr([[[1, 0, 2, -1]], [[0, 0, 1, 2]]], I32), normal(2, 1, 4), 1)
EIGHTHS = integers(-20, 20, 2, 3, 4).astype(F32) / 8
case("ScatterAddAxis", EIGHTHS, arr([[[3, 3], [0, 1], [1, 1]], [[2, 2], [2, 0], [0, 0]]], I32), integers(1, 5, 2, 3, 2).astype(F32), 2)
case("ScatterAddAxis", EIGHTHS, arr([[[0, 1, 1, 2]], [[0, 0, 1, 2]]], U32), integers(1, 5, 2, 1, 4).astype(F32), -2)
case("ScatterAddAxis", integers(0, 9, 5), arr([1, 1, 1], I32), arr([1, 10, 100], I32), 0)


# Gather and Scatter are not in Python's interface: numpy loops over the definition in mlx/ops.h. Indices broadcast; each
# tuple of them is the start of a slice along axes; a result's shape is that of the indices, then sizes.
def places(indices):
    indices = np.broadcast_arrays(*(np.array(i) for i in indices))
    return indices[0].shape, [(at, [int(i[at]) for i in indices]) for at in np.ndindex(indices[0].shape)]


def gather(x, indices, axes, sizes):
    x = np.array(x)
    shape, todo = places(indices)
    y = np.zeros(shape + tuple(sizes), x.dtype)
    for at, start in todo:
        window = [slice(0, n) for n in sizes]
        for axis, s in zip(axes, start):
            s += x.shape[axis] if s < 0 else 0
            window[axis] = slice(s, s + sizes[axis])
        y[at] = x[tuple(window)]
    return mx.array(y)


def scatter(x, indices, updates, axes, add=False):
    y, updates = np.array(x), np.array(updates)
    shape, todo = places(indices)
    sizes = updates.shape[len(shape):]
    for at, start in todo:
        window = [slice(0, n) for n in sizes]
        for axis, s in zip(axes, start):
            s += y.shape[axis] if s < 0 else 0
            window[axis] = slice(s, s + sizes[axis])
        y[tuple(window)] = updates[at] + (y[tuple(window)] if add else 0)
    return mx.array(y)


op("Gather", gather)
op("Scatter", scatter)
op("ScatterAdd", lambda x, indices, updates, axes: scatter(x, indices, updates, axes, add=True))
case("Gather", REDUCE, [arr([1, 0, -1], I32)], [0], [1, 3, 4])
case("Gather", REDUCE, [arr([[0], [1]], I32), arr([2, 1, 0], I32)], [0, 1], [1, 1, 4])
case("Gather", REDUCE, [arr([0, 2], U32)], [2], [2, 2, 2])
case("Gather", integers(0, 99, 5, 2), [arr(3, I32)], [0], [1, 2])
for name in ["Scatter", "ScatterAdd"]:
    case(name, EIGHTHS, [arr([1, 0], I32)], integers(0, 9, 2, 1, 3, 4).astype(F32), [0])
    case(name, EIGHTHS, [arr([0, 1], U32), arr([2, -1], I32)], integers(0, 9, 2, 1, 1, 4).astype(F32), [0, 1])
    case(name, integers(0, 99, 6, 2), [arr([5, 2, 0], I32)], integers(0, 9, 3, 1, 2), [0])
case("Scatter", EIGHTHS, [arr([1, 1], I32)], integers(0, 9, 2, 1, 3, 4).astype(F32), [0])
case("ScatterAdd", EIGHTHS, [arr([1, 1, 1], I32)], integers(0, 9, 3, 1, 3, 4).astype(F32), [0])

# Linear algebra.
op("MatMul", mx.matmul, SUM)
for d in FLOATS:
    case("MatMul", normal(3, 5, dtype=d), normal(5, 4, dtype=d))
    case("MatMul", normal(2, 1, 3, 8, dtype=d), normal(3, 8, 2, dtype=d))
    case("MatMul", normal(8, dtype=d), normal(8, 2, dtype=d))
case("MatMul", normal(3, 5), normal(5))
case("MatMul", normal(3, 5), normal(5, 4, dtype=BF16))
case("MatMul", normal(2, 70), normal(70, 17))
case("MatMul", empty(2, 0), empty(0, 3))
case("MatMul", empty(0, 4), normal(4, 3))
op("AddMM", lambda c, a, b, alpha, beta: mx.addmm(c, a, b, alpha, beta), SUM)
for d in FLOATS:
    case("AddMM", normal(4, dtype=d), normal(3, 5, dtype=d), normal(5, 4, dtype=d), 1.0, 1.0)
    case("AddMM", normal(3, 4, dtype=d), normal(3, 5, dtype=d), normal(5, 4, dtype=d), 0.5, -2.0)
op("GatherMM", lambda a, b, lhs, rhs, s: mx.gather_mm(a, b, lhs_indices=lhs, rhs_indices=rhs, sorted_indices=s), SUM)
a, b = normal(4, 1, 8), normal(3, 8, 2)  # on a CPU it does float32 only
case("GatherMM", a, b, arr([0, 3], U32), arr([2, 0], U32), False)
case("GatherMM", a, b, None, arr([0, 0, 1, 2], U32), True)
case("GatherMM", a, b, arr([[1], [2]], U32), None, False)
op("Outer", mx.outer)
case("Outer", normal(3), normal(4))
case("Outer", normal(3, dtype=BF16), normal(2, dtype=BF16))
case("Outer", integers(0, 9, 3), integers(0, 9, 0))
op("Conv1D", lambda x, w, stride, padding, dilation, groups: mx.conv1d(x, w, stride, padding, dilation, groups), SUM)
op("Conv2D", lambda x, w, stride, padding, groups: mx.conv2d(x, w, stride, padding, 1, groups), SUM)
for d in FLOATS:
    x = normal(2, 9, 4, dtype=d)
    case("Conv1D", x, normal(3, 4, 4, dtype=d), 1, 0, 1, 1)
    case("Conv1D", x, normal(6, 3, 4, dtype=d), 2, 1, 2, 1)
    case("Conv1D", x, normal(4, 4, 1, dtype=d), 1, 3, 1, 4)  # depthwise, as before a recurrent layer
    case("Conv1D", x, normal(4, 3, 2, dtype=d), 1, 0, 1, 2)
    case("Conv2D", normal(1, 6, 5, 2, dtype=d), normal(3, 3, 2, 2, dtype=d), 2, 1, 1)
    case("Conv2D", normal(1, 6, 6, 4, dtype=d), normal(4, 3, 3, 2, dtype=d), 1, 0, 2)

# Quantized weights.
op("Quantize", lambda w, g, b, mode, glob: mx.quantize(w, g or None, b or None, mode, global_scale=glob), FORMAT)
op("Dequantize", lambda w, s, z, g, b, mode, glob, d: mx.dequantize(w, s, z, g or None, b or None, mode, glob, d), FORMAT)
op("QuantizedMatMul", lambda x, w, s, z, t, g, b, mode: mx.quantized_matmul(x, w, s, z, t, g or None, b or None, mode), SUM)
op("GatherQMM", lambda x, w, s, z, lhs, rhs, t, g, b, mode, sort: mx.gather_qmm(
    x, w, s, z, lhs, rhs, t, g or None, b or None, mode, sorted_indices=sort), SUM)
FORMATS = [("affine", g, b) for g, b in [(0, 0), (32, 4), (64, 8), (128, 4), (32, 2), (64, 3), (64, 5), (64, 6), (64, 1)]]
FORMATS += [("mxfp4", 0, 0), ("mxfp4", 32, 4), ("mxfp8", 0, 0), ("nvfp4", 0, 0), ("nvfp4", 16, 4)]
for mode, g, b in FORMATS:
    for d in FLOATS if g == 0 else [BF16]:
        w = normal(3, 128, dtype=d)
        packed, scales, *rest = case("Quantize", w, g, b, mode, None)
        bias = rest[0] if rest else None
        case("Dequantize", packed, scales, bias, g, b, mode, None, d)
        case("QuantizedMatMul", normal(3, 128, dtype=d), packed, scales, bias, True, g, b, mode)
    case("QuantizedMatMul", normal(2, 3, dtype=d), packed, scales, bias, False, g, b, mode)
    experts = [a[0] for a in zip(mx.quantize(normal(3, 2, 128, dtype=BF16), g or None, b or None, mode))]
    packed, scales, bias = experts + [None] * (3 - len(experts))
    x = normal(2, 1, 128, dtype=BF16)
    case("GatherQMM", x, packed, scales, bias, None, arr([2, 0], U32), True, g, b, mode, False)
    if g == 0:
        case("GatherQMM", x, packed, scales, bias, arr([1, 0, 0], U32), arr([0, 1, 1], U32), True, g, b, mode, False)
        case("GatherQMM", x, packed, scales, bias, None, arr([1, 2], U32), True, g, b, mode, True)
w = normal(2, 64, scale=3)
packed, scales = case("Quantize", w, 0, 0, "nvfp4", arr(8.0))
case("Dequantize", packed, scales, None, 0, 0, "nvfp4", arr(8.0), F32)
case("Quantize", mx.zeros((1, 64)), 0, 0, "affine", None)
case("Quantize", mx.zeros((1, 64)), 0, 0, "mxfp4", None)
op("FromFP8", lambda x, d: mx.from_fp8(x, d))
op("ToFP8", mx.to_fp8)
for d in FLOATS:
    case("FromFP8", mx.arange(256).astype(U8), d)
    case("ToFP8", arr([0.0, -0.0, 1.0, 1.0625, 1.1875, -448.0, 500.0, 2.0**-9, 2.0**-10, 1e-5]).astype(d))
case("FromFP8", empty(0, dtype=U8), BF16)

# Blocks of models.
op("RMSNorm", lambda x, w, eps: mx.fast.rms_norm(x, w, eps), SUM)
op("LayerNorm", lambda x, w, b, eps: mx.fast.layer_norm(x, w, b, eps), SUM)
for d in FLOATS:
    x = normal(2, 3, 16, dtype=d)
    case("RMSNorm", x, normal(16, dtype=d), 1e-5)
    case("RMSNorm", x, None, 1e-6)
    case("LayerNorm", x, normal(16, dtype=d), normal(16, dtype=d), 1e-5)
    case("LayerNorm", x, None, None, 1e-5)
    case("LayerNorm", x, normal(16, dtype=d), None, 1e-5)
case("RMSNorm", normal(2, 16, dtype=BF16), normal(16), 1e-5)
case("RMSNorm", empty(0, 16), normal(16), 1e-5)

op("RMSNormPlusOne", lambda x, w, eps: mx.fast.rms_norm(x.astype(F32), 1 + w.astype(F32), eps).astype(x.dtype), ONCE)
op("AddRMSNorm", lambda x, r, w, eps, plus: (x + r, OPS["RMSNormPlusOne"](x + r, w, eps) if plus else mx.fast.rms_norm(x + r, w, eps)), ONCE)
for d in FLOATS:
    x, r, w = normal(3, 19, dtype=d), normal(3, 19, dtype=d), normal(19, dtype=d)
    case("RMSNormPlusOne", x, w, 1e-5)
    case("RMSNormPlusOne", x, w.astype(F32), 1e-5)
    case("AddRMSNorm", x, r, w, 1e-5, False)
    case("AddRMSNorm", x, r, w, 1e-5, True)
    case("AddRMSNorm", x, r, None, 1e-5, False)
case("AddRMSNorm", normal(3, 19, dtype=BF16), normal(19, dtype=BF16), normal(19, dtype=BF16), 1e-5, True)  # broadcast
case("AddRMSNorm", normal(3, 19, dtype=BF16), normal(3, 19), normal(19, dtype=BF16), 1e-5, False)  # promote


def halves(gate, up):
    return (gate, up) if up is not None else mx.split(gate, 2, axis=-1)


for name, f in [("SwiGLU", lambda g: g * mx.sigmoid(g)), ("GEGLU", gelu), ("GEGLUTanh", gelu_tanh), ("SigmoidGate", mx.sigmoid)]:
    op(name, lambda gate, up, f=f: (lambda g, u: f(g) * u)(*halves(gate, up)), ONCE)
    for d in FLOATS:
        case(name, normal(3, 21, dtype=d, scale=2), normal(3, 21, dtype=d))
        case(name, normal(3, 22, dtype=d, scale=2), None)
    case(name, normal(3, 21), normal(21))
    case(name, empty(2, 0), None)

op("RoPE", lambda x, dims, trad, base, scale, offset: mx.fast.rope(
    x, dims, traditional=trad, base=base, scale=scale, offset=offset), ONCE)
op("RoPEFreqs", lambda x, freqs, dims, trad, scale, offset: mx.fast.rope(
    x, dims, traditional=trad, base=None, scale=scale, offset=offset, freqs=freqs), ONCE)
op("RoPEOffsets", lambda x, offsets, freqs, dims, trad, scale: mx.fast.rope(
    x, dims, traditional=trad, base=None, scale=scale, offset=offsets, freqs=freqs), ONCE)
FREQS = arr([1.0, 3.5, 20.0, 400.0])
for d, trad in itertools.product(FLOATS, [False, True]):
    x = normal(2, 2, 3, 8, dtype=d)
    case("RoPE", x, 8, trad, 10000.0, 1.0, 0)
    case("RoPE", x, 4, trad, 10000.0, 0.25, 7)
    case("RoPEFreqs", x, FREQS, 8, trad, 1.0, 5)
    case("RoPEOffsets", x, arr([3, 11], I32), FREQS, 8, trad, 1.0)
case("RoPEOffsets", normal(2, 2, 1, 10), arr(4, I32), FREQS, 8, False, 0.5)
case("RoPE", normal(1, 4, 1, 8), 8, False, 500000.0, 1.0, 1000)



def rotate_rows(xs, positions, freqs, traditional, interleaved, scale, sections):
    half = freqs.size
    rows = [0] * half
    if positions.ndim == 2:
        rows = [r for r, n in enumerate(sections) for _ in range(n)]
        if interleaved:
            rows = [j % len(sections) if j < len(sections) * sections[j % len(sections)] else 0 for j in range(half)]
    angle = (positions.reshape(-1, positions.shape[-1])[arr(rows, I32)].T.astype(F32) * freqs)[:, None]
    cos, sin = mx.cos(angle) * scale, mx.sin(angle) * scale
    out = []
    for x in xs:
        y = x.astype(F32)
        if traditional:
            a, b = y[..., 0:2 * half:2], y[..., 1:2 * half:2]
        else:
            a, b = y[..., :half], y[..., half:2 * half]
        c, d = a * cos - b * sin, b * cos + a * sin
        both = mx.stack([c, d], -1).flatten(-2) if traditional else mx.concatenate([c, d], -1)
        out.append(mx.concatenate([both, y[..., 2 * half:]], -1).astype(x.dtype))
    return out


op("RotateRows", rotate_rows, ONCE)
for d, trad in itertools.product(FLOATS, [False, True]):
    xs = [normal(3, 4, 26, dtype=d), normal(3, 2, 24, dtype=d)]
    freqs = arr([10000.0**(-j / 11) for j in range(11)])
    case("RotateRows", xs, arr([0, 5, 1000], I32), freqs, trad, False, 1.0, [])
    case("RotateRows", xs, arr([7, 5, 3], U32), freqs[:3], trad, False, 1.25, [])
    case("RotateRows", xs, integers(0, 50, 3, 3), freqs, trad, False, 1.0, [5, 2, 4])
    case("RotateRows", xs, integers(0, 50, 3, 3), freqs, trad, True, 1.0, [5, 3, 3])
case("RotateRows", [empty(3, 0, 8), normal(3, 1, 8)], arr([1, 2, 3], I32), arr([1.0, 0.1, 0.0]), True, False, 2.0, [])
case("RotateRows", [empty(3, 0, 8), normal(3, 1, 8)], arr([1, 2, 3], I32), arr([1.0, 0.1, 0.0]), False, False, 2.0, [])

TABLE = normal(9, 128)
op("TableRows", lambda table, ids, scale: table[ids] * arr(scale, table.dtype))
for d in FLOATS:
    case("TableRows", TABLE[:, :19].astype(d), arr([0, 8, -1, 3], I32), 1.0)
    case("TableRows", TABLE[:, :19].astype(d), arr([[2], [7]], U32), 11.3)
case("TableRows", TABLE[:, :3], empty(0, dtype=I32), 2.0)
case("TableRows", arr([[1, 2], [3, 4]], I32), arr([1], I32), 2.0)


def packed_rows(w, s, z, ids, scale, g, b, mode, d):
    return mx.dequantize(w[ids], s[ids], z if z is None else z[ids], g or None, b or None, mode, None, d) * arr(scale, d)


op("PackedTableRows", packed_rows)
for mode, groups, bits in [("affine", [32, 64, 128], [2, 3, 4, 5, 6, 8]), ("mxfp4", [0], [0]), ("mxfp8", [0], [0]), ("nvfp4", [0], [0])]:
    for d, g, b in itertools.product(FLOATS, groups, bits):
        w, scales, *bias = mx.quantize(TABLE.astype(d), g or None, b or None, mode)
        case("PackedTableRows", w, scales, bias[0] if bias else None, arr([3, 0, -2, 8], I32), 1.0, g, b, mode, d)
        if b in (0, 4):
            case("PackedTableRows", w, scales, bias[0] if bias else None, arr([3, 0, -2, 8], I32), 11.3, g, b, mode, d)
w, scales, bias = mx.quantize(TABLE.astype(BF16))
case("PackedTableRows", w, scales, bias, arr([[3], [1]], I32), 1.0, 64, 4, "affine", F32)

op("Attention", lambda q, k, v, mask, sinks, scale, causal: mx.fast.scaled_dot_product_attention(
    q, k, v, scale=scale, mask="causal" if causal else mask, sinks=sinks), SUM)
for d in FLOATS:
    q, k, v = normal(1, 4, 3, 16, dtype=d), normal(1, 2, 5, 16, dtype=d), normal(1, 2, 5, 16, dtype=d)
    boolean = mx.array(np.tri(3, 5, 2, dtype=bool))
    case("Attention", q, k, v, None, None, 0.25, False)
    case("Attention", q, k, v, None, None, 0.25, True)
    case("Attention", q, k, v, boolean, None, 0.25, False)
    case("Attention", q, k, v, normal(1, 1, 3, 5, dtype=d), None, 0.25, False)
    case("Attention", q, k, v, None, normal(4, dtype=d), 0.25, False)
    case("Attention", q, k, v, None, normal(4, dtype=d), 0.25, True)
    case("Attention", q[:, :, :1], k, v, boolean[2:], normal(4, dtype=d), 0.3, False)
case("Attention", normal(2, 2, 2, 8), normal(2, 2, 2, 8), normal(2, 2, 2, 8), normal(2, 2, 2, 2), None, 0.3, False)  # one head per head
case("Attention", normal(1, 4, 2, 8), normal(1, 1, 3, 8), normal(1, 1, 3, 4), None, None, 0.3, True)  # one head for all, short values


def delta_rule(q, k, v, gates, beta, state):
    """The gated delta rule by its definition, one step at a time; state is [B, Hv, Dv, Dk]."""
    repeat = v.shape[2] // k.shape[2]
    q, k = mx.repeat(q, repeat, 2), mx.repeat(k, repeat, 2)
    out = []
    for t in range(q.shape[1]):
        state = state * gates[:, t, :, None, None]
        seen = (state * k[:, t, :, None, :]).sum(-1)
        state = state + ((v[:, t] - seen) * beta[:, t, :, None])[..., None] * k[:, t, :, None, :]
        out.append((state * q[:, t, :, None, :]).sum(-1))
    return mx.stack(out, 1), state


op("GatedDeltaUpdate", mx.fast.gated_delta_update, SUM)
for d, steps in itertools.product(FLOATS, [1, 5]):
    q, k = (mx.fast.rms_norm(normal(2, steps, 1, 32, dtype=d), None, 1e-6) * 32**-0.5 for _ in range(2))
    v = normal(2, steps, 2, 8, dtype=d)
    gates, beta = mx.sigmoid(normal(2, steps, 2)), mx.sigmoid(normal(2, steps, 2, dtype=d))
    state = normal(2, 2, 8, 32)
    for s in [state, None]:
        y, end = case("GatedDeltaUpdate", q, k, v, gates, beta, s, None, relax=None if d == F32 else STEPS)
        want, want_end = delta_rule(*(a.astype(F32) for a in (q, k, v, gates, beta)), mx.zeros((2, 2, 8, 32)) if s is None else s)
        assert mx.allclose(y.astype(F32), want, rtol=0, atol=4e-2 if d != F32 else 1e-4), (d, mx.abs(y - want).max())
        assert mx.allclose(end.astype(F32), want_end, rtol=0, atol=4e-2 if d != F32 else 1e-4), (d, mx.abs(end - want_end).max())
    if steps > 1:
        case("GatedDeltaUpdate", q, k, v, gates, beta, state, mx.array([[True] * 5, [True] * 2 + [False] * 3]))


def delta_rows(q, k, v, gates, beta, states, every, in_place, lengths):
    ys, out, first = [], [], 0
    for n, state in zip(lengths, states):
        state, kept = state[None], []
        for t in range(first, first + n):
            y, state = delta_rule(*(a[None, t:t + 1].astype(F32) for a in (q, k, v, gates, beta)), state)
            ys.append(y[0])
            kept.append(state)
        first += n
        out.append(mx.concatenate(kept) if every else state[0])
    return [mx.concatenate(ys).astype(v.dtype)] + out


op("GatedDeltaRows", delta_rows, ONCE)
for d, every in itertools.product(FLOATS, [False, True]):
    q, k = (mx.fast.rms_norm(normal(6, 2, 13, dtype=d), None, 1e-6) * 13**-0.5 for _ in range(2))
    v = normal(6, 4, 7, dtype=d)
    gates, beta = mx.sigmoid(normal(6, 4)), mx.sigmoid(normal(6, 4, dtype=d))
    case("GatedDeltaRows", q, k, v, gates, beta, [normal(4, 7, 13) for _ in range(3)], every, False, [1, 4, 1])
case("GatedDeltaRows", q, k.astype(F32), v, gates, beta, [normal(4, 7, 13)], True, False, [6])  # of several types
case("GatedDeltaRows", q, k.astype(F32), v, gates, beta, [normal(4, 7, 13)], False, False, [6])


def causal_conv(x, w, bias, states, silu, every, in_place, lengths):
    ys, out, first, taps = [], [], 0, w.shape[0]
    for n, state in zip(lengths, states):
        rows = mx.concatenate([state, x[first:first + n]])
        wide = rows.astype(F32)
        y = sum(wide[j:j + n] * w[j].astype(F32) for j in range(taps)) + (0 if bias is None else bias.astype(F32))
        ys.append(y * mx.sigmoid(y) if silu else y)
        kept = [rows[t + 1:t + taps] for t in range(n)]
        out.append(mx.stack(kept) if every else kept[-1])
        first += n
    return [mx.concatenate(ys).astype(x.dtype)] + out


op("CausalConv", causal_conv, ONCE)
for d, silu in itertools.product(FLOATS, [False, True]):
    states = [normal(3, 21, dtype=d) for _ in range(3)]
    case("CausalConv", normal(7, 21, dtype=d), normal(4, 21, dtype=d), None, states, silu, False, False, [2, 4, 1])
    case("CausalConv", normal(7, 21, dtype=d), normal(4, 21, dtype=d), None, states, silu, False, True, [2, 4, 1])
    case("CausalConv", normal(7, 21, dtype=d), normal(4, 21, dtype=d), normal(21, dtype=d), states, silu, True, False, [4, 1, 2])
for every in [False, True]:  # of several types
    case("CausalConv", normal(3, 5, dtype=BF16), normal(4, 5), None, [normal(3, 5, dtype=BF16)], True, every, False, [3])


op("Decay", lambda x, bias, rate: mx.exp(rate * mx.logaddexp(x.astype(F32) + bias, mx.array(0.0))), SUM)
for d in FLOATS:
    case("Decay", 8 * normal(3, 6, dtype=d), normal(6), -mx.exp(normal(6)))



# Random numbers.
def threefry(key, n):
    """n random words by Threefry-2x32 (Salmon et al., 2011) over the counters 0..n-1, split in halves; Python offers them for
    even n only, as keys, which the assertion below compares."""
    k = [int(v) for v in key] + [0x1BD11BDA ^ int(key[0]) ^ int(key[1])]
    half = (n + 1) // 2
    x = np.arange(half, dtype=np.uint32)
    y = np.arange(half, 2 * half, dtype=np.uint32)
    y[n - half:] = 0
    with np.errstate(over="ignore"):
        x, y = x + np.uint32(k[0]), y + np.uint32(k[1])
        for i in range(5):
            for r in ([13, 15, 26, 6], [17, 29, 16, 24])[i % 2]:
                x = x + y
                y = (y << np.uint32(r) | y >> np.uint32(32 - r)) ^ x
            x, y = x + np.uint32(k[(i + 1) % 3]), y + np.uint32(k[(i + 2) % 3] + i + 1 & 0xFFFFFFFF)
    return mx.array(np.concatenate([x, y])[:n])


op("RandomKey", mx.random.key)
op("RandomSplit", mx.random.split)
op("RandomBits", lambda key, shape: threefry(key, int(np.prod(shape))).reshape(shape))
op("RandomUniform", lambda key, low, high, d, shape: mx.random.uniform(low, high, shape, d, key), LIBM)
op("RandomNormal", lambda key, d, shape: mx.random.normal(shape, d, 0.0, 1.0, key), LIBM)
op("Categorical", lambda logits, key, axis: mx.random.categorical(logits, axis, key=key))
KEYS = [mx.random.key(s) for s in [0, 42, 2**63 + 12345]]
for seed in [0, 42, 2**32 + 1, 2**63 + 12345, 2**64 - 1]:
    case("RandomKey", seed)
for key in KEYS:
    assert mx.array_equal(mx.random.split(key, 5).reshape(-1), threefry(key, 10))
    case("RandomSplit", key, 2)
    case("RandomSplit", key, 5)
    for shape in [[7], [2, 3], [], [0]]:
        case("RandomBits", key, shape)
    for d in FLOATS:
        case("RandomUniform", key, 0.0, 1.0, d, [5])
        case("RandomUniform", key, -2.0, 3.0, d, [2, 3])
        case("RandomNormal", key, d, [3, 3])
    case("Categorical", normal(2, 50), key, -1)
    case("Categorical", normal(2, 50, dtype=BF16), key, 1)
    case("Categorical", normal(4, 6), key, 0)
case("Categorical", arr([[0.0, -INF, -INF], [-INF, -INF, 2.0]]), KEYS[1], -1)



def bfloat(v, up):
    """The nearest bfloat16 not below v, or not above, as its bits."""
    bits = int(np.float32(v).view(np.uint32))
    return ((bits + (0xffff if up != (bits >> 31 == 1) else 0)) >> 16) & 0xffff


def wide_bfloat(bits):
    return np.array(np.array(bits, np.uint32) << 16, np.uint32).view(np.float32)


def pack_rows(x, bits):
    """Codes, scales and biases of groups of 32 channels, by the definition, a group at a time."""
    rows, most = np.array(x.astype(F32)).reshape(-1, x.shape[-1]), np.float32(2**bits - 1)
    out = []
    for row in rows:
        codes, scales, biases = [], [], []
        for g in np.split(row, range(32, len(row), 32)):
            scale = bias = 0x7fc0
            if np.isfinite(g).all():
                bias = bfloat(g.min() + np.float32(0), False)
                scale = bfloat((g.max() + np.float32(0) - wide_bfloat(bias)) / most, True)
            with np.errstate(all="ignore"):
                code = np.round((g - wide_bfloat(bias)) / wide_bfloat(scale))
            code = [int(c) if c < most else int(most) for c in code]
            half = len(code) // 2
            codes += code if bits == 8 else [a | b << 4 for a, b in zip(code[:half], code[half:])]
            scales.append(scale)
            biases.append(bias)
        out.append(codes + [b for v in scales + biases for b in (v & 255, v >> 8)])
    return mx.array(np.array(out, np.uint8).reshape(*x.shape[:-1], -1))


def unpack_rows(x, bits, dtype):
    rows, group = np.array(x).reshape(-1, x.shape[-1]), 32 * bits // 8 + 4
    groups = -(-rows.shape[1] // group)
    size = rows.shape[1] - 4 * groups
    out = []
    for row in rows:
        numbers = wide_bfloat(row[size:].astype(np.uint32)[0::2] | row[size:].astype(np.uint32)[1::2] << 8)
        parts = []
        for g, bytes in enumerate(np.split(row[:size], range(group - 4, size, group - 4))):
            codes = bytes if bits == 8 else np.concatenate([bytes & 15, bytes >> 4])
            with np.errstate(all="ignore"):
                parts.append(codes.astype(np.float32) * numbers[g] + numbers[groups + g])
        out.append(np.concatenate(parts))
    return mx.array(np.stack(out).reshape(*x.shape[:-1], -1)).astype(dtype)


def attend(q, k, v, stores, segments, sinks, after, scale, softcap, window, ring, values, bits, positions):
    """Rows of several sequences over their own keys and values, by the definition, one row at a time. Positions say what the segments do."""
    each = 1 if values else 2
    stores, out, row, first = list(stores), [], 0, 0
    wide = lambda x: x.astype(F32)
    # As they are kept, and as they are read.
    kept = lambda x, like: pack_rows(x, bits) if bits else x.astype(like.dtype)
    read = lambda x: unpack_rows(x, bits, F32) if bits else wide(x)
    for i in range(0, len(segments), 4):
        rows, position, seen, fresh = segments[i:i + 4]
        at = i // 4 * each
        capacity = stores[at].shape[2]
        slot = (lambda p: p % capacity) if ring else (lambda p: p)
        before = seen - fresh
        held = {p: [read(s[:, :, slot(p)]) for s in stores[at:at + each]] for p in range(max(0, before - capacity) if ring else 0, before)}
        for r in range(fresh):
            p = before + r
            held[p] = [read(kept(x[None, first + r], stores[at])) for x in (k, v) if x is not None]
            for j, x in enumerate((k, v)[:each]):
                new = kept(x[first + r], stores[at]).reshape(1, x.shape[1], 1, -1)
                stores[at + j] = slice_update(stores[at + j], new, [0, 0, slot(p), 0], [1, x.shape[1], slot(p) + 1, new.shape[3]], [1, 1, 1, 1])
        for r in range(rows):
            p = position + r
            span = range(max(0, p - window + 1) if window else 0, min(p + 1, seen))
            keys = mx.stack([held[j][0] for j in span], 2)
            vals = keys[..., :values] if values else mx.stack([held[j][1] for j in span], 2)
            repeat = q.shape[1] // keys.shape[1]
            keys, vals = mx.repeat(keys, repeat, 1), mx.repeat(vals, repeat, 1)
            scores = (wide(q[None, row + r])[:, :, None] * keys).sum(-1) * scale
            if softcap:
                scores = softcap * mx.tanh(scores / softcap)
            if sinks is not None:
                scores = mx.concatenate([wide(sinks)[None, :, None], scores], -1)
            weights = mx.softmax(scores, -1)[..., -len(span):]
            out.append((weights[..., None] * vals).sum(2).astype(q.dtype))
        row += rows
        first += fresh
    return [mx.concatenate(out)] + (stores if k is not None else [mx.zeros((1,), U8)])


def at(*positions):
    return mx.array(positions, I32)


op("attend", attend, SUM)
for d in FLOATS:
    def storage(capacity, size=16):
        return normal(1, 2, capacity, size, dtype=d)

    q, k, v = normal(5, 4, 16, dtype=d), normal(5, 2, 16, dtype=d), normal(5, 2, 24, dtype=d)
    full = [storage(8), storage(8, 24), storage(4), storage(4, 24)]
    ring = [storage(4), storage(4, 24), storage(7), storage(7, 24)]
    case("attend", q, k, v, full, [3, 4, 7, 3, 2, 0, 2, 2], None, [], 0.25, 0.0, 0, False, 0, 0, None)
    case("attend", q, k, v, full, [3, 4, 7, 3, 2, 0, 2, 2], normal(4, dtype=d), [q], 0.25, 2.0, 3, False, 0, 0, at(4, 5, 6, 0, 1))
    case("attend", q, k, v, ring, [4, 9, 13, 4, 1, 20, 21, 1], None, [], 0.25, 0.0, 4, True, 0, 0, None)
    case("attend", q[:3], k, v, full, [1, 6, 7, 3, 2, 0, 2, 2], None, [], 0.25, 0.0, 0, False, 0, 0, at(6, 0, 1))
    case("attend", q[:2], k, v, ring, [1, 12, 13, 4, 1, 20, 21, 1], None, [], 0.25, 0.0, 4, True, 0, 0, None)
    case("attend", q[:3], k, v, ring[2:], [3, 20, 23, 5], None, [], 0.25, 0.0, 6, True, 0, 0, None)
    case("attend", q, None, None, full, [4, 3, 6, 0, 1, 3, 4, 0], None, [], 0.25, 0.0, 0, False, 0, 0, None)
    case("attend", q, None, None, ring, [1, 9, 10, 0, 4, 18, 22, 0], None, [], 0.25, 0.0, 3, True, 0, 0, at(9, 18, 19, 20, 21))
    latent = [normal(1, 1, 8, 16, dtype=d)]
    case("attend", q, normal(5, 1, 16, dtype=d), None, latent, [5, 2, 7, 5], None, [], 0.25, 0.0, 0, False, 12, 0, None)
    case("attend", q, None, None, latent, [5, 2, 7, 0], None, [], 0.25, 0.0, 0, False, 12, 0, None)

# Order of evaluation.
op("Depends", lambda xs, on: mx.depends(xs, on))
case("Depends", [FINITE, REDUCE], [X])
case("Depends", [FINITE], [X, REDUCE])

# Layers that share their input; a list of formats counts as ops.txt's modes do.
MODES = ["affine", "mxfp4", "mxfp8", "nvfp4"]


def linear_layers(x, parts, joined, formats, groups, bits, biased, heads):
    parts, out = iter(parts), []
    x = x.reshape(*x.shape[:-2], -1) if joined else x
    for f, g, b, added, h in zip(formats, groups, bits, biased, heads):
        w = next(parts)
        if f < 0:
            y = x @ w.T
        else:
            scales = next(parts)
            y = mx.quantized_matmul(x, w, scales, next(parts) if f == 0 else None, True, g or None, b or None, MODES[f])
        y = y + next(parts) if added else y
        out.append(y.reshape(*y.shape[:-1], h, -1) if h else y)
    return out


op("LinearLayers", linear_layers, SUM)
for rows in (1, 3):
    x, w = normal(rows, 64), normal(6, 64)
    case("LinearLayers", x, [w], False, [-1], [0], [0], [0], [0])
    case("LinearLayers", x, [*mx.quantize(w), w, normal(6), *mx.quantize(w, mode="mxfp4")], False, [0, -1, 1], [0, 0, 0], [0, 0, 0], [0, 1, 0], [3, 0, 2])
    case("LinearLayers", x.reshape(rows, 4, 16), [*mx.quantize(w, 32, 8), normal(6), *mx.quantize(w, mode="nvfp4")], True, [0, 3], [32, 0], [8, 0], [1, 0], [0, 6])
case("LinearLayers", normal(2, 64), [], False, [], [], [], [], [])


# Layers of experts.
def choose(scores, correction, k, groups, top, sigmoid, sum_to_one, scale):
    p = scores.astype(F32)
    p = mx.sigmoid(p) if sigmoid else mx.softmax(p, axis=-1, precise=True)
    key = p if correction is None else p + correction.astype(F32)
    if top < groups:
        grouped = key.reshape(len(p), groups, -1)
        two = mx.topk(grouped, 2, axis=-1).sum(-1)
        kept = (mx.argsort(mx.argsort(-two, axis=-1), axis=-1) < top)[..., None]
        key = mx.where(kept, grouped, -INF).reshape(p.shape)
    chosen = mx.argsort(-key, axis=-1)[:, :k]
    weights = mx.take_along_axis(p, chosen, -1)
    return (weights / (weights.sum(-1, keepdims=True) + 1e-20) if sum_to_one else weights) * scale, chosen


def combine(x, weights, added, gate):
    x = x.reshape(*x.shape[:2], -1)
    y = (x.astype(F32) * weights[..., None]).sum(1)
    if added is not None:
        y += added.astype(F32) * (1 if gate is None else mx.sigmoid(gate.astype(F32)))
    return y.astype(x.dtype)


op("ChooseExperts", choose, SUM)
op("CombineRows", combine, SUM)
for d, sigmoid in itertools.product(FLOATS, [False, True]):
    case("ChooseExperts", normal(3, 21, dtype=d), None, 4, 1, 1, sigmoid, True, 1.0)
    case("ChooseExperts", normal(3, 21, dtype=d), normal(21), 4, 7, 3, sigmoid, False, 1.5)
for d in FLOATS:
    case("CombineRows", normal(3, 4, 21, dtype=d), normal(3, 4), None, None)
    case("CombineRows", normal(3, 4, 1, 21, dtype=d), normal(3, 4), normal(3, 21, dtype=d), normal(3, 1, dtype=d))

# Rows in fewer bits, and attention over them.
op("PackRows", pack_rows)
op("UnpackRows", unpack_rows, SUM)
ODD_ROWS = arr([[0.0] * 8, [-0.0] * 8, [3.0] * 8, [1.0, -2.5, 1e-30, 7.25, 0.1, 0.2, 0.3, -1e-3], [1e30, -1e30, 0, 1, 2, 3, 4, 5],
                [INF, 0, 0, 0, 0, 0, 0, 1], [1, NAN, 2, 3, 4, 5, 6, 7], [100, 100.1, 100.2, 100.3, 100.4, 100.5, 100.6, 100.7]])
for bits in [8, 4]:
    for x in [normal(3, 2, 64), normal(5, 80, dtype=BF16, scale=20), normal(2, 36, dtype=F16), normal(4), ODD_ROWS]:
        (packed_rows,) = case("PackRows", x, bits)
        case("UnpackRows", packed_rows, bits, F32)
    case("UnpackRows", packed_rows, bits, BF16)
    for d in FLOATS:
        q, k, v = normal(5, 4, 16, dtype=d), normal(5, 2, 16, dtype=d), normal(5, 2, 24, dtype=d)
        held = [pack_rows(normal(1, 2, n, size, dtype=d), bits) for n, size in [(8, 16), (8, 24), (4, 16), (4, 24)]]
        case("attend", q, k, v, held, [3, 4, 7, 3, 2, 0, 2, 2], None, [], 0.25, 0.0, 0, False, 0, bits, None)
        case("attend", q, k, v, held, [2, 9, 11, 2, 3, 20, 23, 3], normal(4, dtype=d), [q], 0.25, 2.0, 3, True, 0, bits, at(9, 10, 20, 21, 22))
        case("attend", q, None, None, held, [4, 3, 6, 0, 1, 3, 4, 0], None, [], 0.25, 0.0, 0, False, 0, bits, None)
        latent = [pack_rows(normal(1, 1, 8, 16, dtype=d), bits)]
        case("attend", q, normal(5, 1, 16, dtype=d), None, latent, [5, 2, 7, 5], None, [], 0.25, 0.0, 0, False, 12, bits, None)


def gated_experts(x, weights, chosen, parts, formats, groups, bits, gelu, added, gate):
    parts, banks = iter(parts), []
    for f, g, b in zip(formats, groups, bits):
        w = next(parts)
        if f >= 0:
            scales = next(parts)
            w = mx.dequantize(w, scales, next(parts) if f == 0 else None, g or None, b or None, MODES[f], None, x.dtype)
        banks.append(w.astype(F32))
    out = []
    for t, experts in enumerate(chosen.tolist()):
        rows = []
        for e in experts:
            h = (banks[0][e] @ x[t].astype(F32)).astype(x.dtype).astype(F32)
            a, up = mx.split(h, 2)
            a = 0.5 * a * (1 + mx.tanh(0.7978845608028654 * (a + 0.044715 * a**3))) if gelu else a * mx.sigmoid(a)
            rows.append((banks[1][e] @ (a * up).astype(x.dtype).astype(F32)).astype(x.dtype))
        out.append(mx.stack(rows))
    return combine(mx.stack(out), weights, added, gate)


op("GatedExperts", gated_experts, SUM)
for d in FLOATS:
    x, up, down = normal(3, 64, dtype=d), normal(4, 64, 64, dtype=d) * arr(0.25, d), normal(4, 20, 32, dtype=d) * arr(0.25, d)
    weights, chosen = normal(3, 2), arr([[0, 3], [2, 1], [3, 2]], U32)
    case("GatedExperts", x, weights, chosen, [up, down], [-1, -1], [0, 0], [0, 0], False, None, None)
    case("GatedExperts", x, weights, chosen, [*mx.quantize(up), *mx.quantize(down, 32, 8)], [0, 0], [0, 32], [0, 8], True,
         normal(3, 20, dtype=d), normal(3, 1, dtype=d))


def rotate_normed(xs, weights, eps, plus_one, *rest):
    normed = []
    for x, w in zip(xs, weights):
        y = x.astype(F32)
        y = y * mx.rsqrt(mx.mean(y * y, axis=-1, keepdims=True) + eps)
        normed.append((y * (w.astype(F32) + (1 if plus_one else 0))).astype(x.dtype))
    return rotate_rows(normed, *rest)


op("RotateNormedRows", rotate_normed, SUM)
for d, plus_one in itertools.product(FLOATS, [False, True]):
    case("RotateNormedRows", [normal(3, 4, 26, dtype=d), normal(3, 2, 24, dtype=d)], [normal(26, dtype=d), normal(24, dtype=d)], 1e-5,
         plus_one, arr([0, 5, 1000], I32), arr([1.0, 0.25, 0.01]), False, False, 1.25, [])


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


assert mx.__version__ == "0.32.4", mx.__version__
write()
print(len(cases), "cases of", len({c["op"] for c in cases}), "operations")
