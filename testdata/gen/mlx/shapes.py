"""Cases of operations that create arrays or change their shape, and of slices."""

import mlx.core as mx

from elementwise import FINITE
from record import BF16, F16, F32, F64, FLOATS, I32, I8, INF, INTS, U8, arr, case, empty, integers, normal, op
from reductions import REDUCE

# Creation.
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
