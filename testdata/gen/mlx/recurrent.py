"""Cases of recurrent layers: the gated delta rule, causal convolutions and decays."""

import itertools

import mlx.core as mx

from record import BF16, F32, FLOATS, ONCE, STEPS, SUM, case, normal, op


def delta_rule(q, k, v, gates, beta, state):
    """The gated delta rule by its definition, one step at a time; state is [B, Hv, Dv, Dk]."""
    repeat = v.shape[2] // k.shape[2]
    q, k = mx.repeat(q, repeat, 2), mx.repeat(k, repeat, 2)
    out = []
    for t in range(q.shape[1]):
        state = state * (gates[:, t, :, None, None] if gates.ndim == 3 else gates[:, t, :, None])  # by column
        seen = (state * k[:, t, :, None, :]).sum(-1)
        state = state + ((v[:, t] - seen) * beta[:, t, :, None])[..., None] * k[:, t, :, None, :]
        out.append((state * q[:, t, :, None, :]).sum(-1))
    return mx.stack(out, 1), state


op("GatedDeltaUpdate", mx.fast.gated_delta_update, SUM)
for d, steps in itertools.product(FLOATS, [1, 5]):
    q, k = (mx.fast.rms_norm(normal(2, steps, 1, 32, dtype=d), None, 1e-6) * 32**-0.5 for _ in range(2))
    v = normal(2, steps, 2, 8, dtype=d)
    gates, beta = mx.sigmoid(normal(2, steps, 2)), mx.sigmoid(normal(2, steps, 2, dtype=d))
    state = normal(2, 2, 8, 32)
    for s in [state, None]:
        y, end = case("GatedDeltaUpdate", q, k, v, gates, beta, s, None, relax=None if d == F32 else STEPS)
        want, want_end = delta_rule(*(a.astype(F32) for a in (q, k, v, gates, beta)), mx.zeros((2, 2, 8, 32)) if s is None else s)
        assert mx.allclose(y.astype(F32), want, rtol=0, atol=4e-2 if d != F32 else 1e-4), (d, mx.abs(y - want).max())
        assert mx.allclose(end.astype(F32), want_end, rtol=0, atol=4e-2 if d != F32 else 1e-4), (d, mx.abs(end - want_end).max())
    if steps > 1:
        case("GatedDeltaUpdate", q, k, v, gates, beta, state, mx.array([[True] * 5, [True] * 2 + [False] * 3]))


def delta_rows(q, k, v, gates, beta, states, every, in_place, lengths):
    ys, out, first = [], [], 0
    for n, state in zip(lengths, states):
        state, kept = state[None], []
        for t in range(first, first + n):
            y, state = delta_rule(*(a[None, t:t + 1].astype(F32) for a in (q, k, v, gates, beta)), state)
            ys.append(y[0])
            kept.append(state)
        first += n
        out.append(mx.concatenate(kept) if every else state[0])
    return [mx.concatenate(ys).astype(v.dtype)] + out


op("GatedDeltaRows", delta_rows, ONCE)
for d, every in itertools.product(FLOATS, [False, True]):
    q, k = (mx.fast.rms_norm(normal(6, 2, 13, dtype=d), None, 1e-6) * 13**-0.5 for _ in range(2))
    v = normal(6, 4, 7, dtype=d)
    gates, beta = mx.sigmoid(normal(6, 4)), mx.sigmoid(normal(6, 4, dtype=d))
    case("GatedDeltaRows", q, k, v, gates, beta, [normal(4, 7, 13) for _ in range(3)], every, False, [1, 4, 1])
columns = mx.sigmoid(normal(6, 4, 13))
for every in [False, True]:
    case("GatedDeltaRows", q, k, v, columns, beta, [normal(4, 7, 13) for _ in range(2)], every, False, [1, 5])
for g, every in itertools.product([gates, columns], [True, False]):
    case("GatedDeltaRows", q, k.astype(F32), v, g, beta, [normal(4, 7, 13)], every, False, [6])  # of several types


def causal_conv(x, w, bias, states, silu, every, in_place, lengths):
    ys, out, first, taps = [], [], 0, w.shape[0]
    for n, state in zip(lengths, states):
        rows = mx.concatenate([state, x[first:first + n]])
        wide = rows.astype(F32)
        y = sum(wide[j:j + n] * w[j].astype(F32) for j in range(taps)) + (0 if bias is None else bias.astype(F32))
        ys.append(y * mx.sigmoid(y) if silu else y)
        kept = [rows[t + 1:t + taps] for t in range(n)]
        out.append(mx.stack(kept) if every else kept[-1])
        first += n
    return [mx.concatenate(ys).astype(x.dtype)] + out


op("CausalConv", causal_conv, ONCE)
for d, silu in itertools.product(FLOATS, [False, True]):
    states = [normal(3, 21, dtype=d) for _ in range(3)]
    case("CausalConv", normal(7, 21, dtype=d), normal(4, 21, dtype=d), None, states, silu, False, False, [2, 4, 1])
    case("CausalConv", normal(7, 21, dtype=d), normal(4, 21, dtype=d), None, states, silu, False, True, [2, 4, 1])
    case("CausalConv", normal(7, 21, dtype=d), normal(4, 21, dtype=d), normal(21, dtype=d), states, silu, True, False, [4, 1, 2])
for every in [False, True]:  # of several types
    case("CausalConv", normal(3, 5, dtype=BF16), normal(4, 5), None, [normal(3, 5, dtype=BF16)], True, every, False, [3])


op("Decay", lambda x, bias, rate: mx.exp(rate * mx.logaddexp(x.astype(F32) + bias, mx.array(0.0))), SUM)
for d in FLOATS:
    case("Decay", 8 * normal(3, 6, dtype=d), normal(6), -mx.exp(normal(6)))
