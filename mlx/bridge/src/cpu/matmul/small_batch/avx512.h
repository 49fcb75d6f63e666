// small_batch_whole_tile for AVX-512; see integers.h. The 16 lanes of a vector are the 16 weight rows, and
// the float32 sums of all activation rows stay in registers from the first column to the last.
#pragma once

#include "cpu/matmul/small_batch/integers.h"
#include "cpu/simd/transpose_avx512.h"

namespace ingot::cpu::INGOT_ISA {

// Adds dot16 (Wide) or dot8 of w and *x broadcast to all lanes. It is inline assembly because GCC 12 compiles the
// intrinsics to a separate broadcast instruction.
template <bool Wide>
IG_INLINE void add_repeated(I& sum, I w, const int32_t* x) {
  if constexpr (Wide) {
    asm("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(*x));
  } else {
    asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(*x));
  }
}

template <int R0, int R1, int Fit, int Blocks, bool Biased>
static void small_batch_lanes(const Weights& w, const Activations& x, int64_t n0, int64_t m0, float* y) {
  constexpr bool Wide = Fit == 0;
  constexpr int R = R0 + R1, kOperands = Wide ? 4 : 2;  // operands in a dword of codes
  const int64_t stride = x.columns / (kStep / Blocks), row = w.row_bytes();
  const uint8_t* codes = w.codes + n0 * row;
  const float *x_scales = x.scales + m0 * stride, *x_sums = x.sums + m0 * stride;
  const int32_t* corrections = x.corrections + m0 * stride;
  const __m512i mask = _mm512_set1_epi32(Wide ? 0x000f000f : 0x0f0f0f0f);
  Scales8 scales[2];
  F acc[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) {
    acc[r] = set(0);
  }
  for (int64_t k0 = 0; k0 < x.columns; k0 += kDepth) {
    const int columns = int(x.columns - k0 < kDepth ? x.columns - k0 : kDepth);
    eight_scales(w, n0, k0, columns, kStep / Blocks, scales[0]);
    eight_scales(w, n0 + 8, k0, columns, kStep / Blocks, scales[1]);
    auto data0 = static_cast<const int32_t*>(x.data) + packed_offset(x, m0, k0, R0) / (Wide ? 2 : 4);
    auto data1 = static_cast<const int32_t*>(x.data) + packed_offset(x, m0 + R0, k0, R1) / (Wide ? 2 : 4);
    for (int k = 0; k < columns; k += kStep) {
      I v[8];
      load_transposed_16x8(codes, row, v);
      codes += kStep / 2;
      prefetch_tile(w, n0 + kSmallBatchTile, k0 + k);
      const int at = k / (kStep / Blocks) * 8;
#pragma GCC unroll 2
      for (int b = 0; b < Blocks; b++) {
        I total[R];
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
          total[r] = Biased ? zeros() : repeat(corrections[r * stride + b]);
        }
#pragma GCC unroll 8
        for (int d = 0; d < 8 / Blocks; d++) {
#pragma GCC unroll 4
          for (int j = 0; j < kOperands; j++) {
            const int i = d * kOperands + j;
            I q = v[b * 8 / Blocks + d];
            q = _mm512_and_si512(j ? _mm512_srli_epi32(q, unsigned(4 * j)) : q, mask);
#pragma GCC unroll 8
            for (int r = 0; r < R; r++) {
              add_repeated<Wide>(total[r], q, r < R0 ? data0 + i * R0 + r : data1 + i * R1 + r - R0);
            }
          }
        }
        data0 += 8 / Blocks * kOperands * R0;
        data1 += 8 / Blocks * kOperands * R1;
        auto both = [&](const float* low, const float* high) __attribute__((always_inline)) {
          return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_load_ps(low)), _mm256_load_ps(high), 1);
        };
        F scale = both(scales[0].scales + at + b * 8, scales[1].scales + at + b * 8);
        F bias = Biased ? both(scales[0].biases + at + b * 8, scales[1].biases + at + b * 8) : set(0);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
          acc[r] = fma(scale * set(x_scales[r * stride + b]), to_float(total[r]), acc[r]);
          if constexpr (Biased) {
            acc[r] = fma(bias, set(x_sums[r * stride + b]), acc[r]);
          }
        }
      }
      x_scales += Blocks;
      x_sums += Blocks;
      corrections += Blocks;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) {
    store(y + r * kSmallBatchTile, acc[r]);
  }
}

template <int R0, int R1, int Fit, int Blocks>
static void small_batch_whole_tile(const Weights& w, const Activations& x, int64_t n0, int64_t m0, float* y) {
  x.layout.zero ? small_batch_lanes<R0, R1, Fit, Blocks, false>(w, x, n0, m0, y)
                : small_batch_lanes<R0, R1, Fit, Blocks, true>(w, x, n0, m0, y);
}

}  // namespace ingot::cpu::INGOT_ISA
