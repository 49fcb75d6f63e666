// What a unit of products on x86 offers, of whatever instruction set it is for.
#pragma once

#include "cpu_integers_x86.h"
#include "cpu_stream_x86.h"

namespace ingot::cpu::INGOT_ISA {

constexpr MatmulKernels kMatmul = {
    .tile = kTile,
    .float_rows = kFloatRows,
    .integer_rows = kIntegerRows,
    .few_tile = kFewTile,
    .saturates = kSaturates,
    .integers = true,
    .pairs = kPairsOfBF16,
    .winograd = kSaturates,
    .arrange = arrange,
    .tile_product = tile_product,
    .row_product = rows_product,
    .streams = streams,
    .stream_rows = kStreamRows,
    .few_product = few_product,
    .widen = widen,
    .narrow = narrow,
};

}  // namespace ingot::cpu::INGOT_ISA
