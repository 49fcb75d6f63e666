"""Cases of sparse attention: which stored keys an indexer chooses, attention over chosen ones, and entries of several
positions."""

import mlx.core as mx
import numpy as np

from attention import at, pack_rows, unpack_rows
from record import F32, FLOATS, I32, SUM, U8, arr, case, normal, op


def keys_of(store, bits):
    """Returns the keys [capacity, channels] of a store in float32."""
    return np.array((unpack_rows(store, bits, F32) if bits else store.astype(F32))[0, 0])


def rows_of(segments):
    """Calls for each row: its number, its store, and its position."""
    row = 0
    for i in range(0, len(segments), 2):
        for r in range(segments[i]):
            yield row, i // 2, segments[i + 1] + r
            row += 1


def choose(q, weights, stores, segments, positions, budget, rate, bits):
    """Chooses by the definition, one row at a time. positions repeats what segments says."""
    q, weights, out = np.array(q.astype(F32)), np.array(weights.astype(F32)), []
    for row, store, position in rows_of(segments):
        keys = keys_of(stores[store], bits)[: (position + 1) // rate]
        scores = np.maximum(q[row].astype(np.float64) @ keys.T.astype(np.float64), 0)
        scores = (weights[row].astype(np.float64)[:, None] * scores).sum(0).astype(np.float32)
        best = sorted(sorted(range(len(keys)), key=lambda j: (-scores[j], j))[:budget])
        out.append(best + [-1] * (budget - len(best)))
    return [mx.array(out, I32), mx.zeros((1,), U8)]


def attend(q, chosen, stores, nears, segments, sinks, positions, scale, values, window, rate, bits):
    """Attends by the definition, one row at a time."""
    wide, out = np.array(q.astype(F32)), []
    for row, store, position in rows_of(segments):
        seen = range((position + 1) // rate) if chosen is None else [j for j in np.array(chosen)[row] if j >= 0]
        keys = [keys_of(stores[store], bits)[list(seen)]]
        if nears:
            near = keys_of(nears[store], bits)
            keys.append(near[[p % len(near) for p in range(max(0, position + 1 - window), position + 1)]])
        keys = np.concatenate(keys).astype(np.float64)
        scores = wide[row].astype(np.float64) @ keys.T * scale
        if sinks is not None:
            scores = np.concatenate([scores, np.array(sinks.astype(F32)).astype(np.float64)[:, None]], 1)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        out.append((weights / weights.sum(-1, keepdims=True))[:, : len(keys)] @ keys[:, :values])
    return [mx.array(np.stack(out).astype(np.float32)).astype(q.dtype), mx.zeros((1,), U8)]


def compress(x, rings, entries, parts, segments, after, positions, rate, overlap, eps, scale):
    """Makes entries by the definition. The rings and entries that it returns have their types."""
    rows, kinds, freqs = np.array(x.astype(rings[0].dtype).astype(F32)), len(parts) // 2, np.array(parts[-1])
    wide = [np.array(r.astype(F32)) for r in rings]
    made = [np.array(e.astype(F32)) for e in entries]
    for row, i, position in rows_of(segments):
        ring = wide[i][0, 0]
        ring[position % len(ring)] = rows[row]
        if (position + 1) % rate:
            continue
        e, channel = position // rate, 0
        for kind in range(kinds):
            bias, weight = np.array(parts[2 * kind]).astype(np.float64), np.array(parts[2 * kind + 1]).astype(np.float64)
            width, dim = bias.shape[1], len(weight)
            own = [ring[p % len(ring)].astype(np.float64) for p in range(e * rate, (e + 1) * rate)]
            sources = [(r, b, width - dim) for r, b in zip(own, bias)]
            if overlap and e > 0:
                sources += [(ring[p % len(ring)].astype(np.float64), b, 0) for p, b in zip(range((e - 1) * rate, e * rate), bias)]
            values = np.stack([r[channel + half :][:dim] for r, _, half in sources])
            gates = np.stack([r[channel + width + half :][:dim] + b[half :][:dim] for r, b, half in sources])
            weights = np.exp(gates - gates.max(0))
            mean = (values * weights).sum(0) / weights.sum(0)
            mean = mean / np.sqrt((mean**2).mean() + eps) * weight
            tail = mean[dim - 2 * len(freqs) :].reshape(-1, 2).copy()
            turn = np.exp(1j * e * rate * freqs) * scale
            turned = (tail[:, 0] + 1j * tail[:, 1]) * turn
            mean[dim - 2 * len(freqs) :] = np.stack([turned.real, turned.imag], 1).reshape(-1)
            made[i * kinds + kind][0, 0, e] = mean
            channel += 2 * width
    return [mx.array(w).astype(r.dtype) for w, r in zip(wide + made, rings + entries)]


op("chooseKeys", choose)
op("attendChosen", attend, SUM)
op("compressRows", compress, SUM)
for d in FLOATS:
    for bits in (0, 8):
        held, near = ([normal(1, 1, n, 16, dtype=d) for n in sizes] for sizes in ((9, 12), (9, 7)))
        if bits:
            held, near = ([pack_rows(x, bits) for x in xs] for xs in (held, near))
        queries, weights, sinks = normal(4, 5, 16, dtype=d), normal(4, 5), normal(3)
        (chosen, _) = case("chooseKeys", queries, weights, held, [3, 4, 1, 11], at(4, 5, 6, 11), 6, 1, bits)
        case("attendChosen", normal(4, 3, 16, dtype=d), chosen, held, [], [3, 4, 1, 11], None, None, 0.3, 12, 0, 1, bits)
        (chosen, _) = case("chooseKeys", queries, weights, held, [3, 4, 1, 23], at(4, 5, 6, 23), 6, 2, bits)
        for of in (chosen, None):
            case("attendChosen", normal(4, 3, 16, dtype=d), of, held, near, [3, 4, 1, 23], sinks, at(4, 5, 6, 23), 0.3, 16, 5, 2, bits)
    rings, keys, index = ([normal(1, 1, n, size, dtype=d) for n in sizes] for sizes, size in (((8, 16), 48), ((4, 5), 8), ((4, 5), 4)))
    parts = [normal(4, 16), 1 + normal(8, scale=0.2), normal(4, 8), 1 + normal(4, scale=0.2), arr([1.0, 0.3])]
    case("compressRows", normal(8, 48, dtype=d), rings, [keys[0], index[0], keys[1], index[1]], parts, [1, 11, 7, 1], [],
         at(11, 1, 2, 3, 4, 5, 6, 7), 4, True, 1e-5, 1.25)
    case("compressRows", normal(5, 20, dtype=d), [normal(1, 1, 11, 20, dtype=d)], [normal(1, 1, 4, 10, dtype=d)],
         [normal(3, 10), 1 + normal(10, scale=0.2), arr([1.0, 0.3])], [5, 7], [], None, 3, False, 1e-5, 1.0)
# Equal scores, and rows that see fewer keys than the budget, or none.
case("chooseKeys", mx.ones((3, 2, 4)), mx.ones((3, 2)), [mx.ones((1, 1, 8, 4))], [3, 5], None, 4, 1, 0)
case("chooseKeys", mx.ones((2, 2, 4)), mx.ones((2, 2)), [mx.ones((1, 1, 8, 4))], [2, 0], None, 4, 1, 0)
case("chooseKeys", mx.ones((2, 2, 4)), mx.ones((2, 2)), [mx.ones((1, 1, 8, 4))], [2, 2], None, 4, 4, 0)
