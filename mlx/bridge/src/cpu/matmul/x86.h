// The table of x86 product kernels, for the instruction set of the unit that includes it.
#pragma once

#include "cpu/matmul/integers_x86.h"
#include "cpu/matmul/stream_x86.h"

namespace ingot::cpu::INGOT_ISA {

constexpr MatmulKernels kMatmul = {
    .tile = kTile,
    .float_rows = kFloatRows,
    .integer_rows = kIntegerRows,
    .small_batch_tile = kSmallBatchTile,
    .saturates = kSaturates,
    .integers = true,
    .winograd = kSaturates,
    .pack = pack,
    .tile_product = tile_product,
    .row_product = row_product_x86,
    .streams = streams,
    .stream_rows = kStreamRows,
    .small_batch_product = small_batch_product,
    .widen = widen,
    .narrow = narrow,
};

}  // namespace ingot::cpu::INGOT_ISA
