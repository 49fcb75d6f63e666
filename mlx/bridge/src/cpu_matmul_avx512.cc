// Products with AVX-512 and VNNI.
#define INGOT_ISA avx512
#include "cpu_simd.h"

#include "cpu_few_avx512.h"
#include "cpu_integers_x86.h"
#include "cpu_stream_x86.h"
#include "cpu_vector_avx512.h"

namespace ingot::cpu {

extern const MatmulKernels matmul_avx512;
const MatmulKernels matmul_avx512 = {
    .tile = avx512::kTile,
    .float_rows = avx512::kFloatRows,
    .integer_rows = avx512::kIntegerRows,
    .few_tile = avx512::kFewTile,
    .saturates = avx512::kSaturates,
    .integers = true,
    .arrange = avx512::arrange,
    .tile_product = avx512::tile_product,
    .row_product = avx512::rows_product,
    .streams = avx512::streams,
    .stream_rows = avx512::kStreamRows,
    .few_product = avx512::few_product,
    .widen = avx512::widen,
    .narrow = avx512::narrow,
};

}  // namespace ingot::cpu
