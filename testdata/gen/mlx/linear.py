"""Cases of products, convolutions and quantized weights."""

import mlx.core as mx

from record import BF16, F32, FLOATS, FORMAT, SUM, U32, U8, arr, case, empty, integers, normal, op

# Linear algebra.
op("MatMul", mx.matmul, SUM)
for d in FLOATS:
    case("MatMul", normal(3, 5, dtype=d), normal(5, 4, dtype=d))
    case("MatMul", normal(2, 1, 3, 8, dtype=d), normal(3, 8, 2, dtype=d))
    case("MatMul", normal(8, dtype=d), normal(8, 2, dtype=d))
case("MatMul", normal(3, 5), normal(5))
case("MatMul", normal(3, 5), normal(5, 4, dtype=BF16))
case("MatMul", normal(2, 70), normal(70, 17))
case("MatMul", empty(2, 0), empty(0, 3))
case("MatMul", empty(0, 4), normal(4, 3))
op("AddMM", lambda c, a, b, alpha, beta: mx.addmm(c, a, b, alpha, beta), SUM)
for d in FLOATS:
    case("AddMM", normal(4, dtype=d), normal(3, 5, dtype=d), normal(5, 4, dtype=d), 1.0, 1.0)
    case("AddMM", normal(3, 4, dtype=d), normal(3, 5, dtype=d), normal(5, 4, dtype=d), 0.5, -2.0)
op("GatherMM", lambda a, b, lhs, rhs, s: mx.gather_mm(a, b, lhs_indices=lhs, rhs_indices=rhs, sorted_indices=s), SUM)
a, b = normal(4, 1, 8), normal(3, 8, 2)  # the CPU has float32 only
case("GatherMM", a, b, arr([0, 3], U32), arr([2, 0], U32), False)
case("GatherMM", a, b, None, arr([0, 0, 1, 2], U32), True)
case("GatherMM", a, b, arr([[1], [2]], U32), None, False)
op("Outer", mx.outer)
case("Outer", normal(3), normal(4))
case("Outer", normal(3, dtype=BF16), normal(2, dtype=BF16))
case("Outer", integers(0, 9, 3), integers(0, 9, 0))
op("Conv1D", lambda x, w, stride, padding, dilation, groups: mx.conv1d(x, w, stride, padding, dilation, groups), SUM)
op("Conv2D", lambda x, w, stride, padding, groups: mx.conv2d(x, w, stride, padding, 1, groups), SUM)
for d in FLOATS:
    x = normal(2, 9, 4, dtype=d)
    case("Conv1D", x, normal(3, 4, 4, dtype=d), 1, 0, 1, 1)
    case("Conv1D", x, normal(6, 3, 4, dtype=d), 2, 1, 2, 1)
    case("Conv1D", x, normal(4, 4, 1, dtype=d), 1, 3, 1, 4)  # depthwise, as before a recurrent layer
    case("Conv1D", x, normal(4, 3, 2, dtype=d), 1, 0, 1, 2)
    case("Conv2D", normal(1, 6, 5, 2, dtype=d), normal(3, 3, 2, 2, dtype=d), 2, 1, 1)
    case("Conv2D", normal(1, 6, 6, 4, dtype=d), normal(4, 3, 3, 2, dtype=d), 1, 0, 2)

# Quantized weights.
op("Quantize", lambda w, g, b, mode, glob: mx.quantize(w, g or None, b or None, mode, global_scale=glob), FORMAT)
op("Dequantize", lambda w, s, z, g, b, mode, glob, d: mx.dequantize(w, s, z, g or None, b or None, mode, glob, d), FORMAT)
op("QuantizedMatMul", lambda x, w, s, z, t, g, b, mode: mx.quantized_matmul(x, w, s, z, t, g or None, b or None, mode), SUM)
op("GatherQMM", lambda x, w, s, z, lhs, rhs, t, g, b, mode, sort: mx.gather_qmm(
    x, w, s, z, lhs, rhs, t, g or None, b or None, mode, sorted_indices=sort), SUM)
FORMATS = [("affine", g, b) for g, b in [(0, 0), (32, 4), (64, 8), (128, 4), (32, 2), (64, 3), (64, 5), (64, 6), (64, 1)]]
FORMATS += [("mxfp4", 0, 0), ("mxfp4", 32, 4), ("mxfp8", 0, 0), ("nvfp4", 0, 0), ("nvfp4", 16, 4)]
for mode, g, b in FORMATS:
    for d in FLOATS if g == 0 else [BF16]:
        w = normal(3, 128, dtype=d)
        packed, scales, *rest = case("Quantize", w, g, b, mode, None)
        bias = rest[0] if rest else None
        case("Dequantize", packed, scales, bias, g, b, mode, None, d)
        case("QuantizedMatMul", normal(3, 128, dtype=d), packed, scales, bias, True, g, b, mode)
    case("QuantizedMatMul", normal(2, 3, dtype=d), packed, scales, bias, False, g, b, mode)
    experts = [a[0] for a in zip(mx.quantize(normal(3, 2, 128, dtype=BF16), g or None, b or None, mode))]
    packed, scales, bias = experts + [None] * (3 - len(experts))
    x = normal(2, 1, 128, dtype=BF16)
    case("GatherQMM", x, packed, scales, bias, None, arr([2, 0], U32), True, g, b, mode, False)
    if g == 0:
        case("GatherQMM", x, packed, scales, bias, arr([1, 0, 0], U32), arr([0, 1, 1], U32), True, g, b, mode, False)
        case("GatherQMM", x, packed, scales, bias, None, arr([1, 2], U32), True, g, b, mode, True)
w = normal(2, 64, scale=3)
packed, scales = case("Quantize", w, 0, 0, "nvfp4", arr(8.0))
case("Dequantize", packed, scales, None, 0, 0, "nvfp4", arr(8.0), F32)
case("Quantize", mx.zeros((1, 64)), 0, 0, "affine", None)
case("Quantize", mx.zeros((1, 64)), 0, 0, "mxfp4", None)
op("FromFP8", lambda x, d: mx.from_fp8(x, d))
op("ToFP8", mx.to_fp8)
for d in FLOATS:
    case("FromFP8", mx.arange(256).astype(U8), d)
    case("ToFP8", arr([0.0, -0.0, 1.0, 1.0625, 1.1875, -448.0, 500.0, 2.0**-9, 2.0**-10, 1e-5]).astype(d))
case("FromFP8", empty(0, dtype=U8), BF16)
