"""Cases of operations on single elements: one, two and three arguments, and a number."""

import itertools

import mlx.core as mx

from record import (
    BF16, F16, F32, F64, FLOATS, I32, I64, I8, INF, INTS, LIBM, NAN, ONCE, U16, U32, U64, U8, arr, case, empty,
    gelu, gelu_tanh, integers, normal, op,
)

# One argument.
OFF_EDGES = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.14159, -7.25, 60.0, -60.0, 1e-3, 1e4, INF, -INF, NAN]
X = arr(OFF_EDGES).reshape(3, 6)
POSITIVE = arr([0.0, 1e-3, 0.25, 0.5, 1.0, 2.0, 3.5, 100.0, 6e4, INF]).reshape(2, 5)

for name, f, relax in [
    ("Abs", mx.abs, None), ("Negative", mx.negative, None), ("Sign", mx.sign, None), ("Reciprocal", mx.reciprocal, LIBM),
    ("Square", mx.square, None), ("Sqrt", mx.sqrt, LIBM), ("Rsqrt", mx.rsqrt, LIBM), ("Exp", mx.exp, LIBM),
    ("Expm1", mx.expm1, LIBM), ("Log", mx.log, LIBM), ("Log1p", mx.log1p, LIBM), ("Sin", mx.sin, LIBM),
    ("Cos", mx.cos, LIBM), ("Tanh", mx.tanh, LIBM), ("Erf", mx.erf, LIBM), ("Sigmoid", mx.sigmoid, ONCE),
    ("SiLU", lambda x: x * mx.sigmoid(x), ONCE), ("GELU", lambda x: gelu(x), ONCE), ("GELUTanh", lambda x: gelu_tanh(x), ONCE),
    ("Softplus", lambda x: mx.logaddexp(x, arr(0.0, x.dtype)), ONCE),
    ("Floor", mx.floor, None), ("Ceil", mx.ceil, None), ("IsFinite", mx.isfinite, None), ("IsNaN", mx.isnan, None),
    ("LogicalNot", mx.logical_not, None), ("StopGradient", mx.stop_gradient, None),
    ("ZerosLike", mx.zeros_like, None), ("Contiguous", mx.contiguous, None), ("Copy", lambda x: x, None),
]:
    op(name, f, relax)
    x = POSITIVE if name in ("Sqrt", "Rsqrt", "Log", "Log1p") else X
    for d in FLOATS:
        case(name, x.astype(d))
    case(name, empty(0, 3))
    case(name, arr(0.75))
    case(name, arr([1, 0, 1]).astype(mx.bool_)) if name not in ("Negative", "Abs", "Sign", "ZerosLike") else None
for name in ["Abs", "Negative", "Sign", "Square", "Exp", "Floor", "LogicalNot", "IsFinite", "Copy"]:
    for d in INTS:
        case(name, integers(0 if mx.issubdtype(d, mx.unsignedinteger) else -5, 6, 4, dtype=d))
case("Abs", arr([-2**31, 2**31 - 1], I32))
case("Sin", arr([0.5, -2.0], F64))
case("Exp", arr([0.5, -2.0], F64))

op("Round", lambda x, decimals: mx.round(x, decimals))
for d, n in itertools.product(FLOATS, [0, 2, -1]):
    case("Round", arr([0.5, 1.5, -2.5, 3.14159, 15.0, -24.7, 0.125]).astype(d), n, relax=LIBM if n else None)
case("Round", arr([14, 15, -26], I32), -1)

op("AsType", lambda x, to: x.astype(to))
SMALL = arr([0.0, 1.0, 2.75, 100.0, 3.0])
for d in FLOATS + INTS + [F64, mx.bool_]:
    case("AsType", SMALL, d)
    case("AsType", SMALL.astype(d), F32)
case("AsType", arr([1.00390625, 1.01171875, -3.3895e38, 1e-40, NAN]), BF16)
case("AsType", arr([65504.0, 65520.0, 1e-7, 6e-8]), F16)
case("AsType", empty(0), I8)

op("View", lambda x, to: x.view(to))
case("View", normal(2, 4), U32)
case("View", normal(2, 4), U8)
case("View", normal(2, 4, dtype=BF16), F32)
case("View", arr([[1, 2, 3, 4, 5, 6, 7, 8]], U8), U64)
case("View", empty(3, 0), U16)

# With a number.
for name, f in [("AddScalar", mx.add), ("MultiplyScalar", mx.multiply), ("MaximumScalar", mx.maximum), ("MinimumScalar", mx.minimum),
                ("PowerScalar", mx.power)]:
    op(name, lambda x, v, f=f: f(x, arr(v, x.dtype)), LIBM if name == "PowerScalar" else None)
    for d in FLOATS:
        case(name, normal(2, 3, dtype=d), 2.0)
        case(name, mx.abs(normal(2, 3, dtype=d)), 0.3)
    case(name, integers(-5, 6, 2, 3), 3.0)
    case(name, integers(0, 6, 4, dtype=U8), 2.0)
    case(name, empty(2, 0), 1.0)
    case(name, arr(1.5), 2.0)
case("MaximumScalar", X, -INF)
case("MinimumScalar", X, INF)
case("AddScalar", arr([1, 2], I32), 16777217.0)  # float32 rounds it to 16777216
op("Softcap", lambda x, v: mx.tanh(x * arr(1.0 / v, x.dtype)) * arr(v, x.dtype), ONCE)
for d, v in itertools.product(FLOATS, [30.0, 50.0]):
    case("Softcap", normal(3, 4, dtype=d, scale=40), v)

# Two and three arguments.
FINITE = arr([[1.5, -2.0, 0.25], [3.0, 7.0, -0.5]])
for name, f, relax in [
    ("Add", mx.add, None), ("Subtract", mx.subtract, None), ("Multiply", mx.multiply, None), ("Divide", mx.divide, LIBM),
    ("FloorDivide", mx.floor_divide, LIBM), ("Remainder", mx.remainder, LIBM), ("Power", mx.power, LIBM), ("Maximum", mx.maximum, None),
    ("Minimum", mx.minimum, None), ("LogAddExp", mx.logaddexp, LIBM), ("Equal", mx.equal, None), ("NotEqual", mx.not_equal, None),
    ("Less", mx.less, None), ("LessEqual", mx.less_equal, None), ("Greater", mx.greater, None),
    ("GreaterEqual", mx.greater_equal, None), ("LogicalAnd", mx.logical_and, None), ("LogicalOr", mx.logical_or, None),
]:
    op(name, f, relax)
    base = mx.abs(FINITE) if name == "Power" else FINITE
    for d in FLOATS:
        case(name, base.astype(d), arr([[2.0, 3.0, -0.5]]).astype(d))
    case(name, base, arr([[2.0], [3.0]], BF16))        # broadcast and promote
    case(name, base.astype(F16), arr([2, 3, 1], I32))  # an integer does not widen
    case(name, arr(1.25), arr([[2.0, 1.25]]))
    case(name, empty(0, 3), FINITE[:1])
    for d in [I8, I32, U8, U32, I64]:
        case(name, integers(1, 8, 2, 3, dtype=d), integers(1, 4, 3, dtype=d))
    if name not in ("Power", "Divide", "LogAddExp"):
        case(name, arr([-7, 7, -7, 7], I32), arr([2, -2, -2, 2], I32))
    if name in ("Maximum", "Minimum", "Equal", "NotEqual", "Less"):
        case(name, arr([NAN, 1.0, INF, -0.0]), arr([1.0, NAN, INF, 0.0]))
case("Divide", arr([1, 2, 7], I32), arr([2, 0, 2], I32))
case("FloorDivide", arr([1.0, -1.0, 0.0]), arr([0.0, 0.0, 0.0]))
case("Power", arr([2, 3, -2], I32), arr([10, 0, 3], I32))

for name, f in [("BitwiseAnd", mx.bitwise_and), ("BitwiseOr", mx.bitwise_or), ("BitwiseXor", mx.bitwise_xor),
                ("LeftShift", mx.left_shift), ("RightShift", mx.right_shift)]:
    op(name, f)
    for d in INTS:
        case(name, integers(0, 100, 2, 4, dtype=d), arr([[1], [3]], d))
    case(name, arr([-7, 12], I32), arr([2, 1], I32))
    case(name, empty(0, dtype=U32), arr(1, U32))
case("BitwiseAnd", arr([True, True, False]).astype(mx.bool_), arr([True, False, False]).astype(mx.bool_))

op("Where", mx.where)
COND = arr([[1, 0, 1], [0, 0, 1]]).astype(mx.bool_)
for d in FLOATS + [I32, U8, mx.bool_]:
    case("Where", COND, integers(0, 5, 2, 3, dtype=d), integers(0, 5, 1, 3, dtype=d))
case("Where", COND, FINITE, arr(-INF))
case("Where", arr(True).astype(mx.bool_), arr(1.0, BF16), FINITE)
case("Where", integers(0, 2, 3), FINITE, arr(0.0, F16))
case("Where", COND[:, :0], empty(2, 0), arr(0.0))
