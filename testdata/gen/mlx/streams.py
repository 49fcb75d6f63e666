"""Cases of models with several residual streams, and of RWKV 7."""

import mlx.core as mx

from record import F32, FLOATS, I32, ONCE, SUM, U32, arr, case, normal, op
from scans import segments


def mix_rows(x, weights, added, scales):
    y = x.astype(F32)
    if weights is not None:
        y = (weights[..., None] * y[:, None]).sum(-2)
    if added is not None:
        y = y + scales[..., None] * added.astype(F32)[:, None]
    return y.astype(x.dtype)


def mean_square(x):
    return mx.square(x.astype(F32)).mean(-1, keepdims=True)


def sparse_rows(x, deviations):
    wide = x.astype(F32)
    limit = wide.mean(-1, keepdims=True) + deviations * mx.sqrt(mx.var(wide, -1, keepdims=True))
    return mx.maximum(wide - limit, 0).astype(x.dtype)


op("MixRows", mix_rows, SUM)
op("RescaleRows", lambda x, like, least: (x * mx.sqrt(mean_square(like) / mx.maximum(mean_square(x), least))).astype(x.dtype), SUM)
op("SparseRows", sparse_rows, SUM)
op("BlendRows", lambda x, delta, by: [(x.astype(F32) + delta.astype(F32) * w.astype(F32)).astype(x.dtype) for w in by], ONCE)
op("KnownIDs", lambda ids, n: mx.where(ids.astype(I32) < n, ids.astype(I32), 0))
for d in FLOATS:
    x, added = normal(5, 3, 19, dtype=d), normal(5, 19, dtype=d)
    case("MixRows", x, normal(5, 2, 3), None, None)
    case("MixRows", x, normal(4, 3), added, normal(5, 4))
    case("MixRows", x, None, added, normal(3))
    case("RescaleRows", x, normal(5, 3, 19, dtype=d, scale=3), 1e-5)
    case("RescaleRows", x, normal(5, 3, 19, dtype=d), 2.0)
    case("SparseRows", normal(4, 35, dtype=d), 0.75)
    case("BlendRows", added, normal(5, 19, dtype=d), normal(3, 19, dtype=d))
case("KnownIDs", arr([0, 7, 8, 300], I32), 8)
case("KnownIDs", arr([[9, 3]], U32), 9)


def stream_weights(numbers, scale, base, n, iterations, eps):
    x = numbers * scale + base
    read = (mx.sigmoid(x[:, :n]) + eps)[:, None]
    if iterations == 0:
        return [read]
    mix = mx.softmax(x[:, 2 * n :].reshape(-1, n, n), axis=-1, precise=True) + eps
    mix = mix / (mix.sum(1, keepdims=True) + eps)
    for _ in range(iterations - 1):
        mix = mix / (mix.sum(2, keepdims=True) + eps)
        mix = mix / (mix.sum(1, keepdims=True) + eps)
    return [read, 2 * mx.sigmoid(x[:, n : 2 * n]), mix.swapaxes(1, 2)]


op("StreamWeights", stream_weights, SUM)
case("StreamWeights", normal(5, 24), normal(24), normal(24), 4, 20, 1e-6)
case("StreamWeights", normal(3, 8), normal(8), normal(8), 2, 1, 1e-2)
case("StreamWeights", normal(3, 4), normal(4), normal(4), 4, 0, 1e-6)


def wkv_scan(r, w, k, v, a, parts, eps, states, in_place, lengths):
    kind = r.dtype
    r, w, k, v, a = (x.astype(F32) for x in (r, w, k, v, a))
    key_scale, key_rate, bonus, weight, bias = parts
    decay, rate = mx.exp(-(2.718281828459045**-0.5) * mx.sigmoid(w)), mx.sigmoid(a)
    unit = k * key_scale
    unit = unit / mx.maximum(mx.sqrt(mx.square(unit).sum(-1, keepdims=True)), 1e-7)
    key = k * (1 + (rate - 1) * key_rate)

    def step(t, state):
        removed = (state * unit[t][:, None]).sum(-1)
        state = state * decay[t][:, None] - removed[..., None] * (unit[t] * rate[t])[:, None] + v[t][..., None] * key[t][:, None]
        y = (state * r[t][:, None]).sum(-1)
        y = (y - y.mean(-1, keepdims=True)) * mx.rsqrt(mx.var(y, -1, keepdims=True) + eps)
        return y * weight + bias + (r[t] * key[t] * bonus).sum(-1, keepdims=True) * v[t], state

    y, *ends = segments(lengths, states, step)
    return [y.astype(kind)] + ends


op("WKVScan", wkv_scan, SUM)
for d in FLOATS:
    rows = [normal(6, 2, 21, dtype=d) for _ in range(5)]
    parts = [1 + normal(2, 21, scale=0.2) for _ in range(2)] + [normal(2, 21, scale=0.3), 1 + normal(2, 21, scale=0.2), normal(2, 21)]
    case("WKVScan", *rows, parts, 1e-3, [normal(2, 21, 21, scale=0.3) for _ in range(3)], d == F32, [2, 3, 1])
