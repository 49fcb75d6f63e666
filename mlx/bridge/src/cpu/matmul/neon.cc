// Matrix product kernels for NEON.
#define INGOT_ISA neon
#include "cpu/simd/simd.h"

#include "cpu/matmul/across.h"
#include "cpu/matmul/unpack_portable.h"

namespace ingot::cpu {

extern const MatmulKernels matmul_neon;
const MatmulKernels matmul_neon = {
    .tile = neon::kTile,
    .float_rows = neon::kFloatRows,
    .integer_rows = 0,
    .small_batch_panel = 0,
    .float_batch_panel = 0,
    .small_batch_tile = 0,
    .saturates = false,
    .integers = false,
    .pack = neon::pack,
    .tile_product = neon::tile_product,
    .row_product = neon::row_product,
    .stream_rows = nullptr,
    .small_batch_product = nullptr,
    .across_product = neon::across_product,
    .widen = neon::widen,
    .narrow = neon::narrow,
};

}  // namespace ingot::cpu
