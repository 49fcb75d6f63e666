"""Cases of random numbers."""

import mlx.core as mx
import numpy as np

from record import BF16, FLOATS, INF, LIBM, arr, case, normal, op

def threefry(key, n):
    """Returns n random words by Threefry-2x32 (Salmon et al., 2011) over the counters 0..n-1, split in halves.

    The package offers them for even n only, as keys: the assertion below compares those.
    """
    k = [int(v) for v in key] + [0x1BD11BDA ^ int(key[0]) ^ int(key[1])]
    half = (n + 1) // 2
    x = np.arange(half, dtype=np.uint32)
    y = np.arange(half, 2 * half, dtype=np.uint32)
    y[n - half:] = 0
    with np.errstate(over="ignore"):
        x, y = x + np.uint32(k[0]), y + np.uint32(k[1])
        for i in range(5):
            for r in ([13, 15, 26, 6], [17, 29, 16, 24])[i % 2]:
                x = x + y
                y = (y << np.uint32(r) | y >> np.uint32(32 - r)) ^ x
            x, y = x + np.uint32(k[(i + 1) % 3]), y + np.uint32(k[(i + 2) % 3] + i + 1 & 0xFFFFFFFF)
    return mx.array(np.concatenate([x, y])[:n])


op("RandomKey", mx.random.key)
op("RandomSplit", mx.random.split)
op("RandomBits", lambda key, shape: threefry(key, int(np.prod(shape))).reshape(shape))
op("RandomUniform", lambda key, low, high, d, shape: mx.random.uniform(low, high, shape, d, key), LIBM)
op("RandomNormal", lambda key, d, shape: mx.random.normal(shape, d, 0.0, 1.0, key), LIBM)
op("Categorical", lambda logits, key, axis: mx.random.categorical(logits, axis, key=key))
KEYS = [mx.random.key(s) for s in [0, 42, 2**63 + 12345]]
for seed in [0, 42, 2**32 + 1, 2**63 + 12345, 2**64 - 1]:
    case("RandomKey", seed)
for key in KEYS:
    assert mx.array_equal(mx.random.split(key, 5).reshape(-1), threefry(key, 10))
    case("RandomSplit", key, 2)
    case("RandomSplit", key, 5)
    for shape in [[7], [2, 3], [], [0]]:
        case("RandomBits", key, shape)
    for d in FLOATS:
        case("RandomUniform", key, 0.0, 1.0, d, [5])
        case("RandomUniform", key, -2.0, 3.0, d, [2, 3])
        case("RandomNormal", key, d, [3, 3])
    case("Categorical", normal(2, 50), key, -1)
    case("Categorical", normal(2, 50, dtype=BF16), key, 1)
    case("Categorical", normal(4, 6), key, 0)
case("Categorical", arr([[0.0, -INF, -INF], [-INF, -INF, 2.0]]), KEYS[1], -1)
