"""Cases of attention over stored keys and values, and the packed rows that it reads."""

import mlx.core as mx
import numpy as np

from record import F32, FLOATS, I32, SUM, U8, case, normal, op
from shapes import slice_update


def bfloat(v, up):
    """Returns the bits of v rounded to bfloat16, up or down."""
    bits = int(np.float32(v).view(np.uint32))
    return ((bits + (0xffff if up != (bits >> 31 == 1) else 0)) >> 16) & 0xffff


def wide_bfloat(bits):
    return np.array(np.array(bits, np.uint32) << 16, np.uint32).view(np.float32)


def pack_rows(x, bits):
    """Packs rows by the definition: codes, scales and biases of groups of 32 channels."""
    rows, most = np.array(x.astype(F32)).reshape(-1, x.shape[-1]), np.float32(2**bits - 1)
    out = []
    for row in rows:
        codes, scales, biases = [], [], []
        for g in np.split(row, range(32, len(row), 32)):
            scale = bias = 0x7fc0
            if np.isfinite(g).all():
                bias = bfloat(g.min() + np.float32(0), False)
                scale = bfloat((g.max() + np.float32(0) - wide_bfloat(bias)) / most, True)
            with np.errstate(all="ignore"):
                code = np.round((g - wide_bfloat(bias)) / wide_bfloat(scale))
            code = [int(c) if c < most else int(most) for c in code]
            half = len(code) // 2
            codes += code if bits == 8 else [a | b << 4 for a, b in zip(code[:half], code[half:])]
            scales.append(scale)
            biases.append(bias)
        out.append(codes + [b for v in scales + biases for b in (v & 255, v >> 8)])
    return mx.array(np.array(out, np.uint8).reshape(*x.shape[:-1], -1))


def unpack_rows(x, bits, dtype):
    rows, group = np.array(x).reshape(-1, x.shape[-1]), 32 * bits // 8 + 4
    groups = -(-rows.shape[1] // group)
    size = rows.shape[1] - 4 * groups
    out = []
    for row in rows:
        numbers = wide_bfloat(row[size:].astype(np.uint32)[0::2] | row[size:].astype(np.uint32)[1::2] << 8)
        parts = []
        for g, bytes in enumerate(np.split(row[:size], range(group - 4, size, group - 4))):
            codes = bytes if bits == 8 else np.concatenate([bytes & 15, bytes >> 4])
            with np.errstate(all="ignore"):
                parts.append(codes.astype(np.float32) * numbers[g] + numbers[groups + g])
        out.append(np.concatenate(parts))
    return mx.array(np.stack(out).reshape(*x.shape[:-1], -1)).astype(dtype)


def attend(q, k, v, stores, segments, sinks, after, scale, softcap, window, chunked, ring, values, bits, positions, shared, parts):
    """Attention by the definition, one row at a time: each sequence attends its own keys and values.

    positions repeats what segments says. A sequence's first positions are in slots of shared, its next ones in its own stores.
    """
    each = 1 if values else 2
    stores, out, row, first = list(stores), [], 0, 0
    wide = lambda x: x.astype(F32)
    # Conversions to the stored form and from it.
    kept = lambda x, like: pack_rows(x, bits) if bits else x.astype(like.dtype)
    read = lambda x: unpack_rows(x, bits, F32) if bits else wide(x)
    for i in range(0, len(segments), 4):
        rows, position, seen, fresh = segments[i:i + 4]
        at = i // 4 * each
        capacity = stores[at].shape[2]
        own = [(j // 3 * each, n) for j in range(0, len(parts), 3) if parts[j] == i // 4 for n in range(parts[j + 1], parts[j + 2])]
        base = len(own)
        slot = (lambda p: p % capacity) if ring else (lambda p: p - base)
        before = seen - fresh
        held = {p: [read(s[:, :, n]) for s in shared[j:j + each]] for p, (j, n) in enumerate(own)}
        held |= {p: [read(s[:, :, slot(p)]) for s in stores[at:at + each]] for p in range(max(0, before - capacity) if ring else base, before)}
        for r in range(fresh):
            p = before + r
            held[p] = [read(kept(x[None, first + r], stores[at])) for x in (k, v) if x is not None]
            for j, x in enumerate((k, v)[:each]):
                new = kept(x[first + r], stores[at]).reshape(1, x.shape[1], 1, -1)
                stores[at + j] = slice_update(stores[at + j], new, [0, 0, slot(p), 0], [1, x.shape[1], slot(p) + 1, new.shape[3]], [1, 1, 1, 1])
        for r in range(rows):
            p = position + r
            begin = p // window * window if chunked else max(0, p - window + 1) if window else 0
            span = range(begin, min(p + 1, seen))
            keys = mx.stack([held[j][0] for j in span], 2)
            vals = keys[..., :values] if values else mx.stack([held[j][1] for j in span], 2)
            repeat = q.shape[1] // keys.shape[1]
            keys, vals = mx.repeat(keys, repeat, 1), mx.repeat(vals, repeat, 1)
            scores = (wide(q[None, row + r])[:, :, None] * keys).sum(-1) * scale
            if softcap:
                scores = softcap * mx.tanh(scores / softcap)
            if sinks is not None:
                scores = mx.concatenate([wide(sinks)[None, :, None], scores], -1)
            weights = mx.softmax(scores, -1)[..., -len(span):]
            out.append((weights[..., None] * vals).sum(2).astype(q.dtype))
        row += rows
        first += fresh
    return [mx.concatenate(out)] + (stores if k is not None else [mx.zeros((1,), U8)])


def at(*positions):
    return mx.array(positions, I32)


op("attend", attend, SUM)
for d in FLOATS:
    def storage(capacity, size=16):
        return normal(1, 2, capacity, size, dtype=d)

    q, k, v = normal(5, 4, 16, dtype=d), normal(5, 2, 16, dtype=d), normal(5, 2, 24, dtype=d)
    full = [storage(8), storage(8, 24), storage(4), storage(4, 24)]
    ring = [storage(4), storage(4, 24), storage(7), storage(7, 24)]
    case("attend", q, k, v, full, [3, 4, 7, 3, 2, 0, 2, 2], None, [], 0.25, 0.0, 0, False, False, 0, 0, None, [], [])
    case("attend", q, k, v, full, [3, 4, 7, 3, 2, 0, 2, 2], normal(4, dtype=d), [q], 0.25, 2.0, 3, False, False, 0, 0, at(4, 5, 6, 0, 1), [], [])
    case("attend", q, k, v, ring, [4, 9, 13, 4, 1, 20, 21, 1], None, [], 0.25, 0.0, 4, False, True, 0, 0, None, [], [])
    case("attend", q[:3], k, v, full, [1, 6, 7, 3, 2, 0, 2, 2], None, [], 0.25, 0.0, 0, False, False, 0, 0, at(6, 0, 1), [], [])
    case("attend", q[:2], k, v, ring, [1, 12, 13, 4, 1, 20, 21, 1], None, [], 0.25, 0.0, 4, False, True, 0, 0, None, [], [])
    case("attend", q[:3], k, v, ring[2:], [3, 20, 23, 5], None, [], 0.25, 0.0, 6, False, True, 0, 0, None, [], [])
    case("attend", q, None, None, full, [4, 3, 6, 0, 1, 3, 4, 0], None, [], 0.25, 0.0, 0, False, False, 0, 0, None, [], [])
    case("attend", q, None, None, ring, [1, 9, 10, 0, 4, 18, 22, 0], None, [], 0.25, 0.0, 3, False, True, 0, 0, at(9, 18, 19, 20, 21), [], [])
    parts = [storage(3), storage(3, 24), storage(5), storage(5, 24), storage(2), storage(2, 24)]
    case("attend", q, k, v, full, [3, 9, 12, 3, 2, 3, 5, 2], None, [], 0.25, 0.0, 0, False, False, 0, 0, None, parts, [0, 0, 3, 0, 1, 4, 1, 0, 1])
    case("attend", q, None, None, full, [3, 1, 6, 0, 2, 4, 6, 0], None, [], 0.25, 2.0, 4, False, False, 0, 0, at(1, 2, 3, 4, 5), parts[2:],
         [0, 0, 5, 1, 0, 2])
    latent = [normal(1, 1, 8, 16, dtype=d)]
    case("attend", q, normal(5, 1, 16, dtype=d), None, latent, [5, 2, 7, 5], None, [], 0.25, 0.0, 0, False, False, 12, 0, None, [], [])
    case("attend", q, None, None, latent, [5, 2, 7, 0], None, [], 0.25, 0.0, 0, False, False, 12, 0, None, [], [])
