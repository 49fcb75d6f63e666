"""Cases of fused experts, and of fused norms and rotations."""

import itertools

import mlx.core as mx

from blocks import rotate_rows
from layers import MODES, combine
from record import F32, FLOATS, I32, SUM, U32, arr, case, normal, op


def clamped(x, bias, rows, alpha, limit, shift, one=None):
    """Returns the clamped SwiGLU. Row rows[i] of bias, or one bias, is added to row i."""
    y = x.astype(F32)
    if bias is not None:
        y += bias[rows].astype(F32).reshape(x.shape)
    if one is not None:
        y += one.astype(F32)
    g, u = mx.split(y, 2, axis=-1)
    g, u = mx.minimum(g, limit), mx.clip(u, -limit, limit)
    return ((u + shift) * g * mx.sigmoid(alpha * g)).astype(x.dtype)


def gated_experts(x, weights, chosen, parts, formats, groups, bits, gelu, alpha, limit, shift, biases, added, gate):
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
            if limit:
                act = clamped(h.astype(x.dtype), None, None, alpha, limit, shift, biases[0][e] if biases else None)
                rows.append((banks[1][e] @ act.astype(F32)).astype(x.dtype))
                continue
            a, up = mx.split(h, 2)
            a = 0.5 * a * (1 + mx.tanh(0.7978845608028654 * (a + 0.044715 * a**3))) if gelu else a * mx.sigmoid(a)
            rows.append((banks[1][e] @ (a * up).astype(x.dtype).astype(F32)).astype(x.dtype))
        out.append(mx.stack(rows))
    return combine(mx.stack(out), weights, biases[1] if biases else None, chosen, added, gate)


op("GatedExperts", gated_experts, SUM)
for d in FLOATS:
    x, up, down = normal(3, 64, dtype=d), normal(4, 64, 64, dtype=d) * arr(0.25, d), normal(4, 20, 32, dtype=d) * arr(0.25, d)
    weights, chosen = normal(3, 2), arr([[0, 3], [2, 1], [3, 2]], U32)
    case("GatedExperts", x, weights, chosen, [up, down], [-1, -1], [0, 0], [0, 0], False, 0.0, 0.0, 0.0, [], None, None)
    case("GatedExperts", x, weights, chosen, [up, down], [-1, -1], [0, 0], [0, 0], False, 1.0, 0.75, 0.0, [], None, None)
    case("GatedExperts", x, weights, chosen, [*mx.quantize(up), *mx.quantize(down, 32, 8)], [0, 0], [0, 32], [0, 8], True,
         0.0, 0.0, 0.0, [], normal(3, 20, dtype=d), normal(3, 1, dtype=d))


def identity(weights, chosen, n):
    by_row = [([w for w, e in row if e >= n], [(0, min(min(e for _, e in row), n - 1)) if e >= n else (w, e) for w, e in row])
              for row in (list(zip(*both)) for both in zip(weights.tolist(), chosen.tolist()))]
    return [arr([[sum(own)] for own, _ in by_row], F32), arr([[w for w, _ in rest] for _, rest in by_row], F32),
            arr([[e for _, e in rest] for _, rest in by_row], U32)]


op("IdentityExperts", identity, SUM)
case("IdentityExperts", normal(3, 4), arr([[0, 3, 2, 1], [5, 1, 4, 7], [6, 4, 9, 5]], U32), 4)


def own_experts(weights, chosen, first, n):
    rest, local = [], []
    for row, picks in zip(weights.tolist(), chosen.tolist()):
        own = [e - first for e in picks if first <= e < first + n]
        rest.append([w if first <= e < first + n else 0 for w, e in zip(row, picks)])
        local.append([e - first if first <= e < first + n else min(own, default=n - 1) for e in picks])
    return [arr(rest, F32), arr(local, U32)]


op("OwnExperts", own_experts, SUM)
case("OwnExperts", arr([[1, 2, 3], [4, 5, 6], [7, 8, 9]], F32), arr([[5, 2, 9], [4, 3, 5], [0, 1, 7]], U32), 3, 3)


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
