"""Cases of rows packed in 8 or 4 bits, and of attention over them."""

from attention import at, pack_rows, unpack_rows
from record import BF16, F16, F32, FLOATS, INF, NAN, SUM, arr, case, normal, op

op("PackRows", pack_rows)
op("UnpackRows", unpack_rows, SUM)
ODD_ROWS = arr([[0.0] * 8, [-0.0] * 8, [3.0] * 8, [1.0, -2.5, 1e-30, 7.25, 0.1, 0.2, 0.3, -1e-3], [1e30, -1e30, 0, 1, 2, 3, 4, 5],
                [INF, 0, 0, 0, 0, 0, 0, 1], [1, NAN, 2, 3, 4, 5, 6, 7], [100, 100.1, 100.2, 100.3, 100.4, 100.5, 100.6, 100.7]])
for bits in [8, 4]:
    for x in [normal(3, 2, 64), normal(5, 80, dtype=BF16, scale=20), normal(2, 36, dtype=F16), normal(4), ODD_ROWS]:
        (packed_rows,) = case("PackRows", x, bits)
        case("UnpackRows", packed_rows, bits, F32)
    case("UnpackRows", packed_rows, bits, BF16)
    for d in FLOATS:
        q, k, v = normal(5, 4, 16, dtype=d), normal(5, 2, 16, dtype=d), normal(5, 2, 24, dtype=d)
        held = [pack_rows(normal(1, 2, n, size, dtype=d), bits) for n, size in [(8, 16), (8, 24), (4, 16), (4, 24)]]
        case("attend", q, k, v, held, [3, 4, 7, 3, 2, 0, 2, 2], None, [], 0.25, 0.0, 0, False, False, 0, bits, None, [], [])
        case("attend", q, k, v, held, [2, 9, 11, 2, 3, 20, 23, 3], normal(4, dtype=d), [q], 0.25, 2.0, 3, False, True, 0, bits, at(9, 10, 20, 21, 22), [], [])
        case("attend", q, None, None, held, [4, 3, 6, 0, 1, 3, 4, 0], None, [], 0.25, 0.0, 0, False, False, 0, bits, None, [], [])
        case("attend", q, k, v, held, [3, 8, 11, 3, 2, 0, 2, 2], None, [], 0.25, 0.0, 0, False, False, 0, bits, None, held[2:] + held[:2],
             [0, 1, 4, 0, 0, 2])
        latent = [pack_rows(normal(1, 1, 8, 16, dtype=d), bits)]
        case("attend", q, normal(5, 1, 16, dtype=d), None, latent, [5, 2, 7, 5], None, [], 0.25, 0.0, 0, False, False, 12, bits, None, [], [])
