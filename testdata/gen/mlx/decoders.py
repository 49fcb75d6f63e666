"""Cases of operations that some decoders need: activations, limits, and scales that grow with the position."""

import mlx.core as mx

from record import F32, FLOATS, I32, ONCE, arr, case, normal, op

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
