// Matrix product kernels in portable C++.
#define INGOT_ISA portable
#define INGOT_PORTABLE
#include "cpu/simd/simd.h"

#include "cpu/matmul/across.h"
#include "cpu/matmul/unpack_portable.h"

namespace ingot::cpu {

extern const MatmulKernels matmul_portable;
const MatmulKernels matmul_portable = {
    .tile = portable::kTile,
    .float_rows = portable::kFloatRows,
    .integer_rows = 0,
    .small_batch_panel = 0,
    .float_batch_panel = 0,
    .small_batch_tile = 0,
    .saturates = false,
    .integers = false,
    .pack = portable::pack,
    .tile_product = portable::tile_product,
    .row_product = portable::row_product,
    .stream_rows = nullptr,
    .small_batch_product = nullptr,
    .across_product = portable::across_product,
    .widen = portable::widen,
    .narrow = portable::narrow,
};

}  // namespace ingot::cpu
