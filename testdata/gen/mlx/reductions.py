"""Cases of reductions, scans, softmax and sorting."""

import itertools

import mlx.core as mx

from record import BF16, F16, FLOATS, I32, INF, NAN, ORDER, SUM, U8, arr, case, empty, integers, normal, op, rng

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
    if name != "LogSumExp":  # it rejects empty arrays
        case(name, empty(0, 3), False, [1])
    if name not in ("Max", "Min", "LogSumExp"):  # they have no neutral element
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

# Sorting.
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
