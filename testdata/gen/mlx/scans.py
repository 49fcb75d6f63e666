"""Cases of recurrent layers: selective scans and decayed sums, by their definitions, one row at a time."""

import itertools

import mlx.core as mx

from record import F32, FLOATS, I32, ONCE, SUM, arr, case, normal, op


def segments(lengths, states, step):
    """Runs step(row, state) -> output, state over the rows of each segment."""
    ys, ends, first = [], [], 0
    for n, state in zip(lengths, states):
        for t in range(first, first + n):
            y, state = step(t, state)
            ys.append(y)
        ends.append(state)
        first += n
    return [mx.stack(ys)] + ends


def step_sizes(x, bias, least, most):
    soft = mx.logaddexp(x.astype(F32) + bias, mx.array(0.0))
    return mx.minimum(mx.maximum(soft, least), most if most > 0 else float("inf"))


def state_scan(q, k, v, steps, rate, skip, states, in_place, lengths):
    repeat = v.shape[1] // q.shape[1]
    q, k, wide = mx.repeat(q.astype(F32), repeat, 1), mx.repeat(k.astype(F32), repeat, 1), v.astype(F32)

    def step(t, state):
        state = state * mx.exp(steps[t] * rate)[:, None, None] + (steps[t][:, None] * wide[t])[..., None] * k[t][:, None, :]
        y = (state * q[t][:, None, :]).sum(-1)
        return y if skip is None else y + skip[:, None] * wide[t], state

    y, *ends = segments(lengths, states, step)
    return [y.astype(v.dtype)] + ends


def channel_scan(x, steps, b, c, rate, skip, states, in_place, lengths):
    def step(t, state):
        state = state * mx.exp(steps[t][:, None] * rate) + (steps[t] * x[t])[:, None] * b[t][None, :]
        y = (state * c[t][None, :]).sum(-1)
        return y if skip is None else y + skip * x[t], state

    return segments(lengths, states, step)


def unit_gates(x, input, decay, parts, positions):
    input_bias, decay_bias, rate = parts
    log = rate * mx.sigmoid(decay.astype(F32) + decay_bias)
    first = (positions == 0)[:, None]
    return [x.astype(F32) * mx.sigmoid(input.astype(F32) + input_bias) * mx.where(first, 1.0, mx.sqrt(-mx.expm1(2 * log))), mx.exp(log)]


def decayed_sum(x, decay, states, in_place, lengths):
    return segments(lengths, states, lambda t, state: (decay[t] * state + x[t],) * 2)


op("StepSizes", step_sizes, SUM)
for d, (least, most) in itertools.product(FLOATS, [(0.0, 0.0), (0.2, 1.5)]):
    case("StepSizes", 8 * normal(3, 6, dtype=d), normal(6), least, most)

op("StateScan", state_scan, ONCE)
for d, skips in itertools.product(FLOATS, [False, True]):
    q, k, v = normal(6, 2, 13, dtype=d, scale=0.3), normal(6, 2, 13, dtype=d, scale=0.3), normal(6, 4, 7, dtype=d)
    steps, rate = mx.abs(normal(6, 4, scale=0.3)), -mx.exp(normal(4))
    case("StateScan", q, k, v, steps, rate, normal(4) if skips else None, [normal(4, 7, 13) for _ in range(3)], skips, [1, 4, 1])

op("ChannelScan", channel_scan, ONCE)
for skips in [False, True]:
    x, steps, b, c = normal(6, 21), mx.abs(normal(6, 21, scale=0.3)), normal(6, 5), normal(6, 5)
    case("ChannelScan", x, steps, b, c, -mx.exp(normal(21, 5)), normal(21) if skips else None,
         [normal(21, 5) for _ in range(3)], skips, [2, 3, 1])

op("UnitGates", unit_gates, SUM)
for d in FLOATS:
    rows = [normal(5, 21, dtype=d) for _ in range(3)]
    case("UnitGates", *rows, [normal(21), normal(21), -mx.exp(normal(21))], arr([0, 1, 2, 0, 7], I32))

op("DecayedSum", decayed_sum, SUM)
case("DecayedSum", normal(6, 21), mx.sigmoid(normal(6, 21)), [normal(21) for _ in range(3)], False, [2, 3, 1])
case("DecayedSum", normal(6, 21), mx.sigmoid(normal(6, 21)), [normal(21)], True, [6])
