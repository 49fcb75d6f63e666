"""Cases of operations that some decoders need: activations, limits, scales that grow with the position, chunks of
attention, and routers."""

import mlx.core as mx

from experts import clamped
from record import F32, FLOATS, I32, INF, ONCE, SUM, U32, arr, case, normal, op

op("ReLU2", lambda x: mx.square(mx.maximum(x, arr(0, x.dtype))), ONCE)
op("Clip", lambda x, v: mx.clip(x, arr(-v, x.dtype), arr(v, x.dtype)), None)
op("ExpTail", lambda x, v: mx.where(x > 0, arr(0, x.dtype), mx.expm1(mx.minimum(x, arr(v, x.dtype))) - x), ONCE)
for d in FLOATS:
    case("ReLU2", normal(3, 5, dtype=d))
    case("Clip", normal(3, 5, dtype=d), 0.5)
    case("ExpTail", normal(3, 5, dtype=d, scale=3), -1e-6)


def grown(x, positions, beta, context, shift):
    by = 1 + beta * mx.log1p(((positions + shift) // context).astype(F32))
    return x * by.astype(x.dtype).reshape(-1, *[1] * (x.ndim - 1))


op("GrowRows", grown, ONCE)
for d in FLOATS:
    case("GrowRows", normal(4, 2, 3, dtype=d), arr([0, 15, 16, 1000], I32), 0.5, 16, 0)
    case("GrowRows", normal(4, 2, 3, dtype=d), arr([0, 15, 16, 1000], I32), 0.5, 16, 1)

op("ClampedSwiGLU", clamped, SUM)
for d in FLOATS:
    case("ClampedSwiGLU", normal(3, 10, dtype=d, scale=2), None, None, 1.702, 1.5, 1.0)
    case("ClampedSwiGLU", normal(3, 10, dtype=d, scale=2), None, None, 1.0, 0.75, 0.0)
    case("ClampedSwiGLU", normal(4, 1, 10, dtype=d, scale=2), normal(3, 10, dtype=d), arr([2, 0, 1, 2], U32), 2.0, 0.75, 1.0)
    case("CombineRows", normal(3, 2, 21, dtype=d), normal(3, 2), normal(4, 21, dtype=d), arr([[0, 3], [2, 1], [3, 2]], U32), None, None)
    up, down = normal(4, 64, 64, dtype=d) * arr(0.25, d), normal(4, 20, 32, dtype=d) * arr(0.25, d)
    case("GatedExperts", normal(3, 64, dtype=d), normal(3, 2), arr([[0, 3], [2, 1], [3, 2]], U32), [up, down], [-1, -1], [0, 0],
         [0, 0], False, 1.702, 1.5, 1.0, [normal(4, 64, dtype=d), normal(4, 20, dtype=d)], None, None)


# Attention in chunks of 4: the last rows of a first chunk, and rows on both sides of a boundary in a ring.
for d in FLOATS:
    q, k, v = normal(5, 4, 16, dtype=d), normal(5, 2, 16, dtype=d), normal(5, 2, 24, dtype=d)
    full, ring = ([normal(1, 2, n, size, dtype=d) for size in (16, 24)] for n in (8, 6))
    case("attend", q, k, v, full, [5, 2, 7, 5], None, [], 0.25, 0.0, 4, True, False, 0, 0, None, [], [])
    case("attend", q, k, v, ring, [5, 10, 15, 5], None, [], 0.25, 0.0, 4, True, True, 0, 0, None, [], [])


def mixer(scores, jitter):
    scores = left = scores.astype(F32)
    weights, chosen = [], []
    for _ in range(2):
        at = mx.argmax(left, axis=-1, keepdims=True)
        top = mx.take_along_axis(left, at, -1)
        far = (top - scores) / mx.maximum(mx.abs(scores), top) > 2 * jitter
        weights.append(mx.take_along_axis(mx.softmax(mx.where(far, -INF, left), axis=-1), at, -1))
        chosen.append(at)
        left = mx.put_along_axis(left, at, arr(-INF), -1)
    return mx.concatenate(weights, -1), mx.concatenate(chosen, -1)


op("SparseMixer", mixer, SUM)
for d in FLOATS:
    case("SparseMixer", normal(7, 6, dtype=d), 0.2)

