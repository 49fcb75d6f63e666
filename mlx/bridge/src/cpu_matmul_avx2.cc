// Products with AVX2, FMA and F16C.
#define INGOT_ISA avx2
#include "cpu_simd.h"

#include "cpu_few_avx2.h"
#include "cpu_integers_x86.h"
#include "cpu_stream_x86.h"
#include "cpu_vector_avx2.h"

namespace ingot::cpu {

extern const MatmulKernels matmul_avx2;
const MatmulKernels matmul_avx2 = {
    .tile = avx2::kTile,
    .float_rows = avx2::kFloatRows,
    .integer_rows = avx2::kIntegerRows,
    .few_tile = avx2::kFewTile,
    .saturates = avx2::kSaturates,
    .integers = true,
    .arrange = avx2::arrange,
    .tile_product = avx2::tile_product,
    .row_product = avx2::rows_product,
    .streams = avx2::streams,
    .stream_rows = avx2::kStreamRows,
    .few_product = avx2::few_product,
    .widen = avx2::widen,
    .narrow = avx2::narrow,
};

}  // namespace ingot::cpu
