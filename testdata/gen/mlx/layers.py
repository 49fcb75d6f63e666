"""Cases of layers that share an input and of layers of experts."""

import itertools

import mlx.core as mx

from elementwise import FINITE, X
from record import F32, FLOATS, INF, SUM, U32, arr, case, normal, op
from reductions import REDUCE

# Order of evaluation.
op("Depends", lambda xs, on: mx.depends(xs, on))
case("Depends", [FINITE, REDUCE], [X])
case("Depends", [FINITE], [X, REDUCE])

# Layers that share their input. A format is an index into MODES, or -1 for dense weights.
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
def choose(scores, correction, given, k, groups, top, group_best, scoring, sum_to_one, scale):
    p = scores.astype(F32)
    p = [mx.softmax(p, axis=-1, precise=True), mx.sigmoid(p), mx.sqrt(mx.log1p(mx.exp(p)))][scoring]
    key = p if correction is None else p + correction.astype(F32)
    if top < groups:
        grouped = key.reshape(len(p), groups, -1)
        sums = mx.topk(grouped, group_best, axis=-1).sum(-1)
        kept = (mx.argsort(mx.argsort(-sums, axis=-1), axis=-1) < top)[..., None]
        key = mx.where(kept, grouped, -INF).reshape(p.shape)
    chosen = mx.argsort(-key, axis=-1)[:, :k] if given is None else given
    weights = mx.take_along_axis(p, chosen, -1)
    return (weights / (weights.sum(-1, keepdims=True) + 1e-20) if sum_to_one else weights) * scale, chosen


def combine(x, weights, bias, chosen, added, gate):
    rows = x.reshape(*x.shape[:2], -1).astype(F32)
    if bias is not None:
        rows += bias[chosen].astype(F32)
    y = (rows * weights[..., None]).sum(1)
    if added is not None:
        y += added.astype(F32) * (1 if gate is None else mx.sigmoid(gate.astype(F32)))
    return y.astype(x.dtype)


op("ChooseExperts", choose, SUM)
op("CombineRows", combine, SUM)
for d, scoring in itertools.product(FLOATS, [0, 1, 2]):
    case("ChooseExperts", normal(3, 21, dtype=d), None, None, 4, 1, 1, 2, scoring, True, 1.0)
    case("ChooseExperts", normal(3, 21, dtype=d), normal(21), None, 4, 7, 3, 2, scoring, False, 1.5)
    case("ChooseExperts", normal(2, 21, dtype=d), None, arr([[20, 0, 3], [7, 8, 1]], U32), 3, 1, 1, 2, scoring, True, 1.5)
for d in FLOATS:
    case("CombineRows", normal(3, 4, 21, dtype=d), normal(3, 4), None, None, None, None)
    case("CombineRows", normal(3, 4, 1, 21, dtype=d), normal(3, 4), None, None, normal(3, 21, dtype=d), normal(3, 1, dtype=d))
