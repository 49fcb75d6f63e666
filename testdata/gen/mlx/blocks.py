"""Cases of a model's blocks: norms, gates, rotations, tables and attention."""

import itertools

import mlx.core as mx
import numpy as np

from record import BF16, F32, FLOATS, I32, ONCE, OPS, SUM, U32, arr, case, empty, gelu, gelu_tanh, integers, normal, op

# Norms.
op("RMSNorm", lambda x, w, eps: mx.fast.rms_norm(x, w, eps), SUM)
op("LayerNorm", lambda x, w, b, eps: mx.fast.layer_norm(x, w, b, eps), SUM)
for d in FLOATS:
    x = normal(2, 3, 16, dtype=d)
    case("RMSNorm", x, normal(16, dtype=d), 1e-5)
    case("RMSNorm", x, None, 1e-6)
    case("LayerNorm", x, normal(16, dtype=d), normal(16, dtype=d), 1e-5)
    case("LayerNorm", x, None, None, 1e-5)
    case("LayerNorm", x, normal(16, dtype=d), None, 1e-5)
case("RMSNorm", normal(2, 16, dtype=BF16), normal(16), 1e-5)
case("RMSNorm", empty(0, 16), normal(16), 1e-5)

op("RMSNormPlusOne", lambda x, w, eps: mx.fast.rms_norm(x.astype(F32), 1 + w.astype(F32), eps).astype(x.dtype), ONCE)
op("AddRMSNorm", lambda x, r, w, eps, plus: (x + r, OPS["RMSNormPlusOne"](x + r, w, eps) if plus else mx.fast.rms_norm(x + r, w, eps)), ONCE)
for d in FLOATS:
    x, r, w = normal(3, 19, dtype=d), normal(3, 19, dtype=d), normal(19, dtype=d)
    case("RMSNormPlusOne", x, w, 1e-5)
    case("RMSNormPlusOne", x, w.astype(F32), 1e-5)
    case("AddRMSNorm", x, r, w, 1e-5, False)
    case("AddRMSNorm", x, r, w, 1e-5, True)
    case("AddRMSNorm", x, r, None, 1e-5, False)
case("AddRMSNorm", normal(3, 19, dtype=BF16), normal(19, dtype=BF16), normal(19, dtype=BF16), 1e-5, True)  # broadcast
case("AddRMSNorm", normal(3, 19, dtype=BF16), normal(3, 19), normal(19, dtype=BF16), 1e-5, False)  # promote


def halves(gate, up):
    return (gate, up) if up is not None else mx.split(gate, 2, axis=-1)


for name, f in [("SwiGLU", lambda g: g * mx.sigmoid(g)), ("GEGLU", gelu), ("GEGLUTanh", gelu_tanh), ("SigmoidGate", mx.sigmoid)]:
    op(name, lambda gate, up, f=f: (lambda g, u: f(g) * u)(*halves(gate, up)), ONCE)
    for d in FLOATS:
        case(name, normal(3, 21, dtype=d, scale=2), normal(3, 21, dtype=d))
        case(name, normal(3, 22, dtype=d, scale=2), None)
    case(name, normal(3, 21), normal(21))
    case(name, empty(2, 0), None)

op("RoPE", lambda x, dims, trad, base, scale, offset: mx.fast.rope(
    x, dims, traditional=trad, base=base, scale=scale, offset=offset), ONCE)
op("RoPEFreqs", lambda x, freqs, dims, trad, scale, offset: mx.fast.rope(
    x, dims, traditional=trad, base=None, scale=scale, offset=offset, freqs=freqs), ONCE)
op("RoPEOffsets", lambda x, offsets, freqs, dims, trad, scale: mx.fast.rope(
    x, dims, traditional=trad, base=None, scale=scale, offset=offsets, freqs=freqs), ONCE)
FREQS = arr([1.0, 3.5, 20.0, 400.0])
for d, trad in itertools.product(FLOATS, [False, True]):
    x = normal(2, 2, 3, 8, dtype=d)
    case("RoPE", x, 8, trad, 10000.0, 1.0, 0)
    case("RoPE", x, 4, trad, 10000.0, 0.25, 7)
    case("RoPEFreqs", x, FREQS, 8, trad, 1.0, 5)
    case("RoPEOffsets", x, arr([3, 11], I32), FREQS, 8, trad, 1.0)
case("RoPEOffsets", normal(2, 2, 1, 10), arr(4, I32), FREQS, 8, False, 0.5)
case("RoPE", normal(1, 4, 1, 8), 8, False, 500000.0, 1.0, 1000)


def rotate_rows(xs, positions, freqs, traditional, interleaved, scale, sections):
    half = freqs.size
    rows = [0] * half
    if positions.ndim == 2:
        rows = [r for r, n in enumerate(sections) for _ in range(n)]
        if interleaved:
            rows = [j % len(sections) if j < len(sections) * sections[j % len(sections)] else 0 for j in range(half)]
    angle = (positions.reshape(-1, positions.shape[-1])[arr(rows, I32)].T.astype(F32) * freqs)[:, None]
    cos, sin = mx.cos(angle) * scale, mx.sin(angle) * scale
    out = []
    for x in xs:
        y = x.astype(F32)
        if traditional:
            a, b = y[..., 0:2 * half:2], y[..., 1:2 * half:2]
        else:
            a, b = y[..., :half], y[..., half:2 * half]
        c, d = a * cos - b * sin, b * cos + a * sin
        both = mx.stack([c, d], -1).flatten(-2) if traditional else mx.concatenate([c, d], -1)
        out.append(mx.concatenate([both, y[..., 2 * half:]], -1).astype(x.dtype))
    return out


op("RotateRows", rotate_rows, ONCE)
for d, trad in itertools.product(FLOATS, [False, True]):
    xs = [normal(3, 4, 26, dtype=d), normal(3, 2, 24, dtype=d)]
    freqs = arr([10000.0**(-j / 11) for j in range(11)])
    case("RotateRows", xs, arr([0, 5, 1000], I32), freqs, trad, False, 1.0, [])
    case("RotateRows", xs, arr([7, 5, 3], U32), freqs[:3], trad, False, 1.25, [])
    case("RotateRows", xs, integers(0, 50, 3, 3), freqs, trad, False, 1.0, [5, 2, 4])
    case("RotateRows", xs, integers(0, 50, 3, 3), freqs, trad, True, 1.0, [5, 3, 3])
case("RotateRows", [empty(3, 0, 8), normal(3, 1, 8)], arr([1, 2, 3], I32), arr([1.0, 0.1, 0.0]), True, False, 2.0, [])
case("RotateRows", [empty(3, 0, 8), normal(3, 1, 8)], arr([1, 2, 3], I32), arr([1.0, 0.1, 0.0]), False, False, 2.0, [])

TABLE = normal(9, 128)
op("TableRows", lambda table, ids, scale: table[ids] * arr(scale, table.dtype))
for d in FLOATS:
    case("TableRows", TABLE[:, :19].astype(d), arr([0, 8, -1, 3], I32), 1.0)
    case("TableRows", TABLE[:, :19].astype(d), arr([[2], [7]], U32), 11.3)
case("TableRows", TABLE[:, :3], empty(0, dtype=I32), 2.0)
case("TableRows", arr([[1, 2], [3, 4]], I32), arr([1], I32), 2.0)


def packed_rows(w, s, z, ids, scale, g, b, mode, d):
    return mx.dequantize(w[ids], s[ids], z if z is None else z[ids], g or None, b or None, mode, None, d) * arr(scale, d)


op("PackedTableRows", packed_rows)
for mode, groups, bits in [("affine", [32, 64, 128], [2, 3, 4, 5, 6, 8]), ("mxfp4", [0], [0]), ("mxfp8", [0], [0]), ("nvfp4", [0], [0])]:
    for d, g, b in itertools.product(FLOATS, groups, bits):
        w, scales, *bias = mx.quantize(TABLE.astype(d), g or None, b or None, mode)
        case("PackedTableRows", w, scales, bias[0] if bias else None, arr([3, 0, -2, 8], I32), 1.0, g, b, mode, d)
        if b in (0, 4):
            case("PackedTableRows", w, scales, bias[0] if bias else None, arr([3, 0, -2, 8], I32), 11.3, g, b, mode, d)
w, scales, bias = mx.quantize(TABLE.astype(BF16))
case("PackedTableRows", w, scales, bias, arr([[3], [1]], I32), 1.0, 64, 4, "affine", F32)

op("Attention", lambda q, k, v, mask, sinks, scale, causal: mx.fast.scaled_dot_product_attention(
    q, k, v, scale=scale, mask="causal" if causal else mask, sinks=sinks), SUM)
for d in FLOATS:
    q, k, v = normal(1, 4, 3, 16, dtype=d), normal(1, 2, 5, 16, dtype=d), normal(1, 2, 5, 16, dtype=d)
    boolean = mx.array(np.tri(3, 5, 2, dtype=bool))
    case("Attention", q, k, v, None, None, 0.25, False)
    case("Attention", q, k, v, None, None, 0.25, True)
    case("Attention", q, k, v, boolean, None, 0.25, False)
    case("Attention", q, k, v, normal(1, 1, 3, 5, dtype=d), None, 0.25, False)
    case("Attention", q, k, v, None, normal(4, dtype=d), 0.25, False)
    case("Attention", q, k, v, None, normal(4, dtype=d), 0.25, True)
    case("Attention", q[:, :, :1], k, v, boolean[2:], normal(4, dtype=d), 0.3, False)
case("Attention", normal(2, 2, 2, 8), normal(2, 2, 2, 8), normal(2, 2, 2, 8), normal(2, 2, 2, 2), None, 0.3, False)
# One KV head, and values narrower than keys.
case("Attention", normal(1, 4, 2, 8), normal(1, 1, 3, 8), normal(1, 1, 3, 4), None, None, 0.3, True)
