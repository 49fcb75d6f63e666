"""Cases of copies that caches make."""

import mlx.core as mx

from record import FLOATS, U8, arr, case, integers, normal, op


def join_slots(ranges, n, xs):
    parts = [x[:, :, begin:end] for x, begin, end in zip(xs, ranges[::2], ranges[1::2])]
    left = n - sum(p.shape[2] for p in parts)
    return mx.concatenate([*parts, mx.zeros([1, xs[0].shape[1], left, xs[0].shape[3]], xs[0].dtype)], axis=2)


op("JoinSlots", join_slots)
for d in FLOATS:
    a, b = normal(1, 3, 5, 4, dtype=d), normal(1, 3, 7, 4, dtype=d)
    case("JoinSlots", [0, 5], 5, [a])
    case("JoinSlots", [1, 5, 0, 7, 2, 2, 3, 4], 20, [a, b, b, a])
    case("JoinSlots", [0, 5], 8, [a[:, :, ::-1]])
case("JoinSlots", [2, 6, 0, 1], 6, [integers(0, 256, 1, 2, 6, 11, dtype=U8), integers(0, 256, 1, 2, 2, 11, dtype=U8)])
case("JoinSlots", [0, 1, 0, 1], 2, [arr([[[[1]]]], U8), arr([[[[2]]]], U8)])
