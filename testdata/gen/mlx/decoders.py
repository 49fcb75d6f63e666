"""Cases of operations that some decoders need: activations, limits, and scales that grow with the position."""

import mlx.core as mx

from experts import clamped
from record import F32, FLOATS, I32, ONCE, SUM, U32, arr, case, normal, op

op("ReLU2", lambda x: mx.square(mx.maximum(x, arr(0, x.dtype))), ONCE)
op("Clip", lambda x, v: mx.clip(x, arr(-v, x.dtype), arr(v, x.dtype)), None)
op("ExpTail", lambda x, v: mx.where(x > 0, arr(0, x.dtype), mx.expm1(mx.minimum(x, arr(v, x.dtype))) - x), ONCE)
for d in FLOATS:
    case("ReLU2", normal(3, 5, dtype=d))
    case("Clip", normal(3, 5, dtype=d), 0.5)
    case("ExpTail", normal(3, 5, dtype=d, scale=3), -1e-6)


def grown(x, positions, beta, context):
    by = 1 + beta * mx.log1p((positions // context).astype(F32))
    return x * by.astype(x.dtype).reshape(-1, *[1] * (x.ndim - 1))


op("GrowRows", grown, ONCE)
for d in FLOATS:
    case("GrowRows", normal(4, 2, 3, dtype=d), arr([0, 15, 16, 1000], I32), 0.5, 16)

op("ClampedSwiGLU", clamped, SUM)
for d in FLOATS:
    case("ClampedSwiGLU", normal(3, 10, dtype=d, scale=2), None, None, 1.702, 1.5)
    case("ClampedSwiGLU", normal(4, 1, 10, dtype=d, scale=2), normal(3, 10, dtype=d), arr([2, 0, 1, 2], U32), 2.0, 0.75)
    case("CombineRows", normal(3, 2, 21, dtype=d), normal(3, 2), normal(4, 21, dtype=d), arr([[0, 3], [2, 1], [3, 2]], U32), None, None)
    up, down = normal(4, 64, 64, dtype=d) * arr(0.25, d), normal(4, 20, 32, dtype=d) * arr(0.25, d)
    case("GatedExperts", normal(3, 64, dtype=d), normal(3, 2), arr([[0, 3], [2, 1], [3, 2]], U32), [up, down], [-1, -1], [0, 0],
         [0, 0], False, 1.702, 1.5, [normal(4, 64, dtype=d), normal(4, 20, dtype=d)], None, None)
