"""Cases of operations that take indices."""

import mlx.core as mx
import numpy as np

from record import BF16, F32, FLOATS, I32, I64, U32, U8, arr, case, empty, integers, normal, op
from reductions import REDUCE

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
op("ScatterAddAxis", scatter_add_axis)  # not in the package: numpy sums the same numbers, exactly
case("TakeAlongAxis", REDUCE, integers(-4, 4, 2, 3, 2), -1)
case("TakeAlongAxis", REDUCE, integers(0, 3, 2, 1, 4, dtype=U32), 1)
case("TakeAlongAxis", REDUCE.astype(BF16), integers(0, 2, 1, 3, 4), 0)
case("PutAlongAxis", REDUCE, arr([[[3], [0], [1]], [[2], [2], [0]]], U32), arr(7.0), -1)
case("PutAlongAxis", REDUCE, arr([[[1, 0, 2, -1]], [[0, 0, 1, 2]]], I32), normal(2, 1, 4), 1)
EIGHTHS = integers(-20, 20, 2, 3, 4).astype(F32) / 8
case("ScatterAddAxis", EIGHTHS, arr([[[3, 3], [0, 1], [1, 1]], [[2, 2], [2, 0], [0, 0]]], I32), integers(1, 5, 2, 3, 2).astype(F32), 2)
case("ScatterAddAxis", EIGHTHS, arr([[[0, 1, 1, 2]], [[0, 0, 1, 2]]], U32), integers(1, 5, 2, 1, 4).astype(F32), -2)
case("ScatterAddAxis", integers(0, 9, 5), arr([1, 1, 1], I32), arr([1, 10, 100], I32), 0)


# Gather and Scatter are not in the package: numpy follows the definition in mlx/ops.h. Indices broadcast. Each tuple of
# indices is the start of a slice along axes. The result has the shape of the indices, then sizes.
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
