"""Writes quantize/testdata: groups of weights as the official package quantizes them. Package quantize must equal it.

The rules of package quantize are those of the wheel for Linux on x86-64, so the script runs there only.

  edges.safetensors  hand-written groups, as rows of 128 elements. For each element type "BF16", "F16", "F32" it has the
                     rows, and for each format and type "FORMAT.TYPE.packed", ".scales", ".biases", and ".decoded": for
                     each row eight bytes of SHA-256 of the dequantized row in BF16, F16 and F32
  bulk.safetensors   hashes of the same for groups from a generator that the test has too (rows() below), and for every
                     BF16 and F16 number as the largest of a group
  cast.safetensors   results of astype: source and results for 64 bit and integer types, hashes for others
"""
import hashlib
import json
import pathlib

import mlx.core as mx
import numpy as np

OUT = pathlib.Path(__file__).resolve().parents[3] / "quantize" / "testdata"

# Element type -> its dtype, the unsigned integer of its size, bits of exponent and mantissa.
FLOATS = {
    "BF16": (mx.bfloat16, np.uint16, 8, 7),
    "F16": (mx.float16, np.uint16, 5, 10),
    "F32": (mx.float32, np.uint32, 8, 23),
}
FORMATS = {f"int{b}" + ("" if g == 64 else f"-g{g}"): ("affine", b, g) for b in (2, 3, 4, 5, 6, 8) for g in (64, 32, 128)}
FORMATS |= {"mxfp4": ("mxfp4", 4, 32), "mxfp8": ("mxfp8", 8, 32), "nvfp4": ("nvfp4", 4, 16)}
HEADER = {"uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "int8": "I8", "int16": "I16", "int32": "I32",
          "int64": "I64", "float64": "F64"}


def save(name, tensors):
    header, data = {}, b""
    for key, a in tensors.items():
        b = np.ascontiguousarray(a).tobytes()
        header[key] = {"dtype": HEADER[str(a.dtype)], "shape": list(a.shape), "data_offsets": [len(data), len(data) + len(b)]}
        data += b
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (OUT / name).write_bytes(len(text).to_bytes(8, "little") + text + data)


def raw(a):
    """Returns the bits of an array, in numpy."""
    view = {1: mx.uint8, 2: mx.uint16, 4: mx.uint32, 8: mx.uint64}[a.dtype.size]
    return np.array(a.view(view))


def sha(*parts):
    return np.frombuffer(hashlib.sha256(b"".join(np.ascontiguousarray(p).tobytes() for p in parts)).digest()[:8], np.uint8)


def quantize(bits, dtype, fmt):
    """Returns packed codes, scales, biases (affine formats only) and decoded values, all as bits."""
    mode, width, group = FORMATS[fmt]
    w = mx.array(bits).view(FLOATS[dtype][0])
    coded = mx.quantize(w, group_size=group, bits=width, mode=mode)
    decoded = [mx.dequantize(*coded, group_size=group, bits=width, mode=mode, dtype=FLOATS[t][0]) for t in FLOATS]
    return [raw(a) for a in coded], [raw(a) for a in decoded]


# Groups from a generator.

GAMMA = 0x9E3779B97F4A7C15
KINDS = 8


def mix(i):
    """Returns number i of the splitmix64 sequence from 0."""
    with np.errstate(over="ignore"):
        z = (i.astype(np.uint64) + np.uint64(1)) * np.uint64(GAMMA)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return z ^ z >> np.uint64(31)


def rows(dtype, count):
    """Returns the bits of [count, 128] finite elements. Row r has kind r % 8, y is its random number, x an element's.

    The exponent of an element is the row's, between 2^-14 and 2^1, less a number with a geometric distribution, which
    spreads elements evenly. Sign and mantissa are random. Kinds: 0 unchanged; 1 positive; 2 negative; 3 two bits of
    mantissa; 4 any finite bits; 5 one sign and one exponent; 6 one element 2^9 above the row; 7 seven of eight elements
    zero.
    """
    _, uint, ebits, mbits = FLOATS[dtype]
    u = np.uint64
    x = mix(np.arange(count * 128, dtype=u) + u(1 << 32)).reshape(count, 128)
    y = mix(np.arange(count, dtype=u) + u(1 << 40))[:, None]
    kind = np.broadcast_to(np.arange(count)[:, None] % KINDS, x.shape)
    y = np.broadcast_to(y, x.shape)
    column = np.broadcast_to(np.arange(128, dtype=u), x.shape)

    bias, top = (1 << ebits - 1) - 1, (1 << ebits) - 1
    low = (x & u(0xFF)) | u(0x100)
    zeros = np.zeros(x.shape, np.int64)
    for i in range(1, 9):
        zeros += (low & u((1 << i) - 1)) == 0
    base = (y % u(16)).astype(np.int64) + (bias - 14)
    exp = np.maximum(base - zeros, 0)
    exp = np.where(kind == 5, base, exp)
    exp = np.where((kind == 6) & (column == (y >> u(8)) % u(128)), base + 9, exp)
    exp = np.minimum(exp, top - 1)

    man = x >> u(8) & u((1 << mbits) - 1)
    man = np.where(kind == 3, man & u(3 << mbits - 2), man)
    sign = x >> u(63)
    sign = np.where(kind == 1, u(0), sign)
    sign = np.where(kind == 2, u(1), sign)
    sign = np.where(kind == 5, y >> u(63), sign)
    bits = exp.astype(u) << u(mbits) | man
    bits = np.where((kind == 7) & (x >> u(40) & u(7) != 0), u(0), bits)
    bits |= sign << u(ebits + mbits)

    anything = x >> u(16) & u((1 << 1 + ebits + mbits) - 1)
    infinite = anything >> u(mbits) & u(top) == u(top)
    anything = np.where(infinite, anything ^ u(1 << mbits), anything)
    return np.where(kind == 4, anything, bits).astype(uint)


def bulk():
    """Returns hashes for each format and type: [kind, (codes, decoded as BF16, F16, F32), 8]."""
    out = {}
    for dtype in FLOATS:
        w = rows(dtype, 1024)
        for fmt in FORMATS:
            coded, decoded = quantize(w, dtype, fmt)
            out[f"{fmt}.{dtype}"] = np.stack([
                np.stack([sha(*(a[k::KINDS] for a in coded))] + [sha(a[k::KINDS]) for a in decoded]) for k in range(KINDS)])
    # Row p has the number with bits p, then zeros.
    for dtype in ("BF16", "F16"):
        _, uint, ebits, mbits = FLOATS[dtype]
        peaks = np.zeros(((((1 << ebits) - 1) << mbits), 32), uint)
        peaks[:, 0] = np.arange(len(peaks))
        for fmt in ("mxfp4", "mxfp8", "nvfp4"):
            coded, decoded = quantize(peaks, dtype, fmt)
            out[f"peaks.{fmt}.{dtype}"] = np.stack([sha(*coded)] + [sha(a) for a in decoded])
    return out


# Hand-written groups.

def as_bits(values, dtype):
    """Converts float64 to bits and rounds once. Numbers that are too large become the largest one."""
    _, uint, ebits, mbits = FLOATS[dtype]
    bias = (1 << ebits - 1) - 1
    v = np.abs(values)
    with np.errstate(divide="ignore"):
        exp = np.maximum(np.floor(np.log2(np.where(v > 0, v, 1))), 1 - bias)
    q = np.rint(v / 2.0 ** (exp - mbits)).astype(np.uint64)
    bits = q + ((exp + bias - 1).astype(np.uint64) << np.uint64(mbits))
    bits = np.minimum(bits, np.uint64((((1 << ebits) - 1) << mbits) - 1))
    return (bits | np.signbit(values).astype(np.uint64) << np.uint64(ebits + mbits)).astype(uint)


def edge_rows(dtype):
    """Yields rows of 128 float64, or of bits."""
    _, uint, ebits, mbits = FLOATS[dtype]
    bias = (1 << ebits - 1) - 1
    largest, tiny, sub, ulp = (2 - 2.0**-mbits) * 2.0**bias, 2.0 ** (1 - bias), 2.0 ** (1 - bias - mbits), 2.0**-mbits
    n = np.arange(128.0)
    flip = np.where(n % 2 == 0, 1.0, -1.0)

    def full(v):
        return np.full(128, float(v))

    def place(row, at, v):
        row = row.copy()
        row[np.asarray(at)] = v
        return row

    def repeat(values):
        return np.resize(np.asarray(values, float), 128)

    # All elements equal, zeros included.
    for v in (0.0, 1.0, 0.1, 1e-7, 5e-8, 4.9e-8, 1e-4, largest, largest / 2, 3.4e31, 3.5e31, tiny, sub, 2 * sub):
        yield full(v)
        yield full(-v)
    yield 0.0 * flip
    # Ramps of one and of two signs, equally far and not.
    for row in (n, n - 64, n - 127, n + 1, 63.5 - n, 2 * n - 127, n - 20, n - 100):
        yield row
        yield row / 128 * 0.037
    # Narrow groups far from zero.
    yield 1 + n * ulp
    yield -1 - n * ulp
    for k in (3, 5, 6, 8, 12, 14, 20, 27, 30, 38, 54, 84, 102):
        yield 1 + (n % k) * ulp
        yield -1.5 - (n % k) * ulp
    yield (1 + (n % 2) * ulp) * 1e4
    yield -(1 + (n % 2) * ulp) * largest / 2
    # One outlier, at each end and in the middle; zeros and noise around it.
    for v in (100.0, -100.0, largest, -largest, tiny):
        yield place(full(0), range(0, 128, 16), v)
        yield place(0.01 * flip * (1 + n / 128), range(7, 128, 16), v)
        yield place(full(0.01), range(15, 128, 16), v)
    # Ranges up to and beyond the largest number.
    yield largest * flip
    yield largest / 2 * flip
    yield largest * 0.75 * flip
    yield place(largest * n / 127, [3, 35, 67, 99], -largest)
    yield largest * (n - 64) / 64 * 0.5
    yield np.where(n % 3 == 0, largest, -sub)
    yield np.where(n % 3 == 0, -largest, tiny)
    # Subnormals.
    yield sub * n
    yield -sub * n
    yield sub * (n - 64)
    yield tiny * flip * (1 + n / 64)
    yield sub * flip
    yield np.where(n % 16 == 0, sub * 7, sub * (n % 5))
    for k in range(0, 14, 2):
        yield tiny * 2.0**k * 6 * (n % 8) / 8
        yield tiny * 2.0**-k * 448 * flip * (n % 8) / 8
    # Quotients halfway between codes: a range of 2^bits - 1 steps, and elements between them.
    for bits in (2, 3, 4, 5, 6, 8):
        top = float((1 << bits) - 1)
        for step in (1.0, 0.25, 2.0**-9):
            inside = (n * 1.5) % top
            row = np.where(n % 16 == 0, top, np.where(n % 16 == 8, 0, np.floor(inside) + 0.5))
            yield row * step
            yield -row * step
    # Halfway between four-bit numbers, and beside it, for scales near a power of two.
    bounds = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
    near = np.concatenate([bounds, bounds * (1 + ulp), bounds * (1 - ulp / 2)])
    near = np.concatenate([[6.0], near[:15], [-6.0], -near[:15], [6.0], near[6:], [-6.0], -near[6:]])
    for scale in (1.0, 2.0**-7, 1 + ulp, 1 - ulp / 2, 0.03, 1.25 * 2.0**-6, 448.0, 2.0**-9, 2.0**-14):
        yield repeat(near) * scale
    # Halfway between eight-bit numbers.
    m = np.arange(16.0)
    for e in (-9, -7, -6, -3, 0, 5):
        yield place(np.where(n < 64, 1, -1) * (1 + (n % 64 + 0.5) / 8 % 1) * 2.0**e, range(0, 128, 16), 448.0)
    yield place(flip * (n % 24) / 4 * 2.0**-9, range(0, 128, 16), 448.0)
    yield place(448 - 4 * repeat(m), range(0, 128, 16), 448.0)
    # Largest magnitudes near a change of scale; a row has 8 groups of 16 or 4 of 32.
    for peak in (6.0, 448.0):
        for e in (0, -3, -13, 6):
            v = peak * 2.0**e
            group = [v, v * (1 + ulp), v * (1 - ulp / 2), v * (1 + 2 * ulp)]
            row = np.repeat(group, 32) * (n % 32 / 31)
            yield row
            yield -row
    # Eight-bit scales: halfway between two, rounded to zero, and clipped.
    codes = np.arange(8.0)
    for first in (8.0, 8 * 2.0**-9, 0.0):
        row = np.repeat(6 * (codes + 0.5 + first) * (2.0**-9 if first < 1 else 1.0), 16)
        yield row * ((n % 16 + 1) / 16)
        yield row * (1 - ulp) * flip * ((n % 16 + 1) / 16)
    yield np.repeat(6 * 2.0**-10 * np.array([1, 1 + ulp, 1 - ulp / 2, 1.5, 0.5, 0.1, 2, 3]), 16) * flip
    for big in (2688.0, 2689.0, 3000.0, 5e4, 1e6, 448 * 2.0**20, 448 * 2.0**23, 448 * 2.0**24, 448 * 2.0**25, 1e12, 1e20, largest):
        yield big * flip * (1 - (n % 16) / 40)
        yield place(flip * n, range(0, 128, 16), big)
    # Zeros of both signs, and elements much smaller than the scale.
    yield place(0.0 * flip, range(0, 128, 16), 3.0)
    yield np.where(n % 16 == 0, 1.0, flip * 2.0 ** -(n % 16 + 3))


def edges():
    out = {}
    for dtype in FLOATS:
        w = np.stack([as_bits(r, dtype) for r in edge_rows(dtype)])
        out[dtype] = w
        for fmt in FORMATS:
            coded, decoded = quantize(w, dtype, fmt)
            for part, a in zip(("packed", "scales", "biases"), coded):
                out[f"{fmt}.{dtype}.{part}"] = a
            out[f"{fmt}.{dtype}.decoded"] = np.stack([sha(*row) for row in zip(*decoded)])
    return out


# Casts.

def casts():
    """Returns TYPE, the source, and TYPE.BF16 and so on, the results.

    For BF16 and F16 the source is every number, for F32 that of halfway(). Results of these are hashes.
    """
    def cast(bits, dtype, to):
        return raw(mx.array(bits).view(dtype).astype(FLOATS[to][0]))

    def put(name, bits, dtype):
        for to in FLOATS:
            out[f"{name}.{to}"] = cast(bits, dtype, to)

    out = {}
    for name in ("BF16", "F16"):
        every = np.arange(1 << 16, dtype=np.uint16)
        for to in FLOATS:
            out[f"{name}.{to}"] = sha(cast(every, FLOATS[name][0], to))
    for to in FLOATS:
        out[f"F32.{to}"] = sha(cast(halfway(), mx.float32, to))

    with np.errstate(all="ignore"):
        f = np.array([0, -0.0, 1, -1, 1 + 2**-8, 1 + 2**-8 + 2**-40, 1 + 3 * 2**-8, 1 + 2**-11, 1 + 2**-11 + 2**-30, 1 + 2**-24,
                      1 + 3 * 2**-24, 65504, 65519.99, 65520, 65536, 3.4028235e38, 3.4028235677973366e38, 3.4e39, -1e300, 1e-300,
                      2**-149, 2**-150, 2**-150 * 1.0001, 2**-24, 2**-25, 2**-25 * 1.0001, 2**-26, 2**-133, 2**-134, 6.1e-5,
                      np.inf, -np.inf, np.nan, -np.nan, np.pi, -1e-40], np.float64)
        f = np.concatenate([f, np.array([0x7FF0000000000001, 0xFFF0000020000000, 0x7FF8123456789ABC, 0x7FF7FFFFFFFFFFFF], np.uint64).view(np.float64)])
    out["F64"] = f
    put("F64", f.view(np.uint64), mx.float64)
    for t in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        info = np.iinfo(t)
        v = {0, 1, 2, 3, 100, 127, info.max, info.max - 1, info.min}
        for b in range(7, 65):
            for d in (-1, 0, 1, (1 << b) >> 8, (1 << b) >> 9, ((1 << b) >> 8) + 1, ((1 << b) >> 24) + 1, (1 << b) >> 24, (3 << b) >> 25):
                v |= {(1 << b) + d, -(1 << b) - d}
        v = np.array(sorted(x for x in v if info.min <= x <= info.max), t)
        out[HEADER[t]] = v
        put(HEADER[t], v.view(f"uint{info.bits}"), getattr(mx, t))
    return out


def halfway():
    """Returns bits of float32: numbers halfway between neighbours in BF16 and F16 of one sign, the numbers beside
    these, and 65536 random ones, NaN among them.
    """
    h = np.arange(1 << 16, dtype=np.uint32)
    b = h << np.uint32(16) | np.uint32(0x8000)
    f = h[(h & 0x7FFF) < 0x7BFF].astype(np.uint16)
    mid = (f.view(np.float16).astype(np.float32) + (f + np.uint16(1)).view(np.float16).astype(np.float32)) / 2
    mid = mid.view(np.uint32)
    one = np.uint32(1)
    noise = (mix(np.arange(1 << 16) + (1 << 44)) >> np.uint64(32)).astype(np.uint32)
    return np.concatenate([b - one, b, b + one, mid - one, mid, mid + one, noise])


def main():
    mx.set_default_device(mx.cpu)
    OUT.mkdir(parents=True, exist_ok=True)
    save("edges.safetensors", edges())
    save("bulk.safetensors", bulk())
    save("cast.safetensors", casts())


if __name__ == "__main__":
    main()
