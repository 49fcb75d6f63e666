// small_batch_whole_tile for AVX2; see cpu/matmul/small_batch/integers.h.
#pragma once

#include "cpu/matmul/small_batch/integers.h"

namespace ingot::cpu::INGOT_ISA {

template <int R0, int R1, int Fit, int Blocks>
static void small_batch_whole_tile(const Weights& w, const Activations& x, int64_t n0, int64_t m0, float* y) {
  constexpr int kActivationBytes = Fit ? 1 : 2;  // bytes of an activation
  constexpr int block = kStep / Blocks, blocks = Blocks;
  const int64_t stride = x.columns / block, row = w.row_bytes();
  const uint8_t* codes = w.codes + n0 * row;
  TransposedStep<Fit == 0, true> transposed[2];
  Scales8 scales[2];
  __builtin_memset(y, 0, size_t(R0 + R1) * kSmallBatchTile * sizeof(float));
  const float *x_scales = x.scales + m0 * stride, *x_sums = x.sums + m0 * stride;
  for (int64_t k0 = 0; k0 < x.columns; k0 += kDepth) {
    const int columns = int(x.columns - k0 < kDepth ? x.columns - k0 : kDepth);
    eight_scales(w, n0, k0, columns, block, scales[0]);
    eight_scales(w, n0 + 8, k0, columns, block, scales[1]);
    auto data0 = static_cast<const int32_t*>(x.data) + packed_offset(x, m0, k0, R0) * kActivationBytes / 4;
    auto data1 = static_cast<const int32_t*>(x.data) + packed_offset(x, m0 + R0, k0, R1) * kActivationBytes / 4;
    int c = 0;
    for (int k = 0; k < columns; k += kStep) {
#pragma GCC unroll 2
      for (int h = 0; h < 2; h++) {
        load_transposed_8x8(codes + h * 8 * row, row, transposed[h].v);
      }
      codes += 32;
      prefetch_tile(w, n0 + kSmallBatchTile, k0 + k);
      SmallBatchOperands<Fit == 0, true> operands = {.weights = transposed,
                                           .scales = scales,
                                           .at = c,
                                           .blocks = blocks,
                                           .data0 = data0,
                                           .data1 = data1,
                                           .x_scales = x_scales,
                                           .x_sums = x_sums,
                                           .stride = stride,
                                           .y = y};
      if constexpr (R0 + R1 <= 6) {  // the twelve sums leave registers for weights
        small_batch_kernel<R0, R1, Fit, true, false, Blocks>(operands);
      } else {
        small_batch_kernel<R0, 0, Fit, true, false, Blocks>(operands);
        operands.data0 = data1;
        operands.x_scales += R0 * stride;
        operands.x_sums += R0 * stride;
        operands.y += R0 * kSmallBatchTile;
        small_batch_kernel<R1, 0, Fit, true, false, Blocks>(operands);
      }
      data0 += kStep * kActivationBytes / 4 * R0;
      data1 += kStep * kActivationBytes / 4 * R1;
      x_scales += blocks;
      x_sums += blocks;
      c += 8 * blocks;
    }
  }
}

}  // namespace ingot::cpu::INGOT_ISA
