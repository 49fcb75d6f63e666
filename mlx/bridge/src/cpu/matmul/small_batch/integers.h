// Small-batch products on x86: 2 to small_batch_rows_of rows of integer activations, unless stream_avx2.h or
// stream_avx512.h takes them. Those of float32 activations are in floats.h.
//
// Sixteen weight rows are multiplied at a time. A step of kStep columns of their codes is transposed in registers, so
// that the lanes of a vector are weight rows. The codes are then unpacked and multiplied by broadcast activations
// without going through a tile buffer: weights are read once, and only activations are read again.
#pragma once

#include <immintrin.h>

#include "cpu/matmul/small_batch/floats.h"
#include "cpu/simd/dot_x86.h"
#include "cpu/matmul/unpack_avx2.h"

namespace ingot::cpu::INGOT_ISA {

constexpr int kSmallBatchPanel = 4;  // activation rows of a panel; their sums fit in registers
constexpr int kRowsPerPass = 8;      // activation rows per pass over a transposed step

// See MatmulKernels::small_batch_rows. With AVX-512, tiles take eight rows at a time as well, and only the transpose of
// affine 4-bit codes is cheaper than that of tiles.
static int small_batch_rows_of(const Weights& w, Mode mode) {
  if (!has_integers(mode)) {
    return mode == Mode::f32 && w.format == Format::plain ? kFloatBatchRows : 0;
  }
  if (kSaturates) {
    return 2 * kRowsPerPass;
  }
  return w.format == Format::affine && w.bits == 4 ? kRowsPerPass : 0;
}

// One step of eight weight rows, transposed: v[d] holds dword d of each row. A dword has eight 4-bit codes. Other codes
// are unpacked: it has two of them as int16 if Wide, otherwise four bytes.
template <bool Wide, bool Nibbles>
struct TransposedStep {
  static constexpr int kDwords = Nibbles ? 8 : Wide ? 32 : 16;
  alignas(32) __m256i v[kDwords];
};

// Loads a step of eight weight rows and transposes it.
template <bool Wide, bool Nibbles>
IG_INLINE void transpose_step(const RowStep& s, const Weights& w, TransposedStep<Wide, Nibbles>& t) {
  if constexpr (!Nibbles) {
    if (w.bits < 8) {
      return unpack_any_pairs<Wide>(w.bits, s.at, s.stride, reinterpret_cast<int32_t*>(t.v), 8);
    }
  }
#pragma GCC unroll 2
  for (int half = 0; half < (Nibbles ? 1 : 2); half++) {
    __m256i v[8];
#pragma GCC unroll 8
    for (int r = 0; r < 8; r++) {
      v[r] = load_bytes(s.row(r) + half * 32);
    }
    transpose(v);
#pragma GCC unroll 8
    for (int d = 0; d < 8; d++) {
      if constexpr (Nibbles || !Wide) {
        t.v[half * 8 + d] = v[d];
      } else {
        split_bytes(v[d], t.v + half * 16 + 2 * d);
      }
    }
  }
}

// Unpacks a vector of a transposed step to kOperands vectors that can be multiplied: get(v, j) returns the j-th, as
// int16 if Wide, otherwise as bytes.
template <bool Wide, bool Nibbles, bool FP4>
struct Operands {
  static constexpr int kOperands = !Nibbles ? 1 : Wide ? 4 : 2;

  static inline __attribute__((always_inline)) __m256i get(__m256i v, int j) {
    if (!Nibbles) {
      return v;
    }
    if (FP4) {  // bytes are looked up, which two of the operands share
      const __m256i nibbles = _mm256_and_si256(j % 2 ? _mm256_srli_epi32(v, 4) : v, _mm256_set1_epi8(15));
      const __m256i q = _mm256_shuffle_epi8(fp4_table(), nibbles);
      return !Wide ? q : j < 2 ? _mm256_and_si256(q, _mm256_set1_epi16(255)) : _mm256_srli_epi16(q, 8);
    }
    if (Wide && j == 3) {
      return _mm256_srli_epi16(v, 12);
    }
    return _mm256_and_si256(j ? _mm256_srli_epi32(v, 4 * j) : v, _mm256_set1_epi32(Wide ? 0x000f000f : 0x0f0f0f0f));
  }

  // Returns which operand is the i-th to be multiplied: those that share instructions follow each other.
  static constexpr int order(int i) { return Wide && FP4 ? i % 2 * 2 + i / 2 : i; }
};

// The operands of small_batch_kernel at one step of columns.
template <bool Wide, bool Nibbles>
struct SmallBatchOperands {
  const TransposedStep<Wide, Nibbles>* weights;  // the two halves of the weight rows
  // scales[h] has, from index `at` on, the weight scales and biases of the step's blocks for half h.
  const Scales8* scales;
  int at;
  int blocks;  // of columns with a scale each
  // Two panels of R0 and R1 activation rows, as dwords [columns/2 or columns/4][R0 or R1].
  const int32_t *data0, *data1;
  // The activation scales and sums of the first row at this step; those of the next row are stride further.
  const float *x_scales, *x_sums;
  int64_t stride;
  float* y;
};

// Micro-kernel: y[r][j] += x[r] . W[n0+j] over the columns of one step, for r < R0 + R1 <= 6 and j < 16. Each broadcast
// activation serves both halves of the weight rows, and integer sums stay in registers until they are complete. Blocks
// replaces the operands' blocks if it is not 0. Fit is 0 for int16 activations; for int8 it is the number of product
// sums that fit in 16 bits (see sums_that_fit).
template <int R0, int R1, int Fit, bool Nibbles, bool FP4, int Blocks = 0>
IG_INLINE void small_batch_kernel(SmallBatchOperands<Fit == 0, Nibbles> m) {
  constexpr int R = R0 + R1;
  using Op = Operands<Fit == 0, Nibbles, FP4>;
  constexpr bool narrow = Fit != 0 && kSaturates;
  constexpr int kOperands = Op::kOperands;
  constexpr int kRun = narrow ? Fit / kOperands : Nibbles ? 1 : 4;
  const int blocks = Blocks ? Blocks : m.blocks;
  const int dwords = TransposedStep<Fit == 0, Nibbles>::kDwords / blocks;
  const __m256i *v0 = m.weights[0].v, *v1 = m.weights[1].v;
  const int32_t *data0 = m.data0, *data1 = m.data1;
#pragma GCC unroll 1
  for (int b = 0; b < blocks; b++) {
    IG_BARRIER();
    __m256i total[2][R];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      total[0][r] = total[1][r] = _mm256_setzero_si256();
    }
#pragma GCC unroll 1
    for (int d = 0; d < dwords; d += kRun) {
      __m256i sum16[2][R];
#pragma GCC unroll 8
      for (int r = 0; r < R && !narrow; r++) {
        sum16[0][r] = total[0][r];
        sum16[1][r] = total[1][r];
      }
#pragma GCC unroll 8
      for (int i = 0; i < kRun * kOperands; i++) {
        const int j = Op::order(i % kOperands), at = i / kOperands * kOperands + j;
        __m256i q0 = Op::get(v0[i / kOperands], j), q1 = Op::get(v1[i / kOperands], j);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
          __m256i a = _mm256_set1_epi32(r < R0 ? data0[at * R0 + r] : data1[at * R1 + r - R0]);
          if (narrow && i == 0) {
            sum16[0][r] = _mm256_maddubs_epi16(q0, a);
            sum16[1][r] = _mm256_maddubs_epi16(q1, a);
          } else {
            sum16[0][r] = Fit ? add8(sum16[0][r], q0, a) : add16(sum16[0][r], q0, a);
            sum16[1][r] = Fit ? add8(sum16[1][r], q1, a) : add16(sum16[1][r], q1, a);
          }
          IG_KEEP(sum16[0][r]);
          IG_KEEP(sum16[1][r]);
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) {
        total[0][r] = narrow ? _mm256_add_epi32(total[0][r], _mm256_madd_epi16(sum16[0][r], _mm256_set1_epi16(1)))
                             : sum16[0][r];
        total[1][r] = narrow ? _mm256_add_epi32(total[1][r], _mm256_madd_epi16(sum16[1][r], _mm256_set1_epi16(1)))
                             : sum16[1][r];
      }
      data0 += kRun * kOperands * R0;
      data1 += kRun * kOperands * R1;
      v0 += kRun;
      v1 += kRun;
    }
    IG_BARRIER();
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
      __m256 scale = _mm256_load_ps(m.scales[h].scales + m.at + b * 8),
             bias = _mm256_load_ps(m.scales[h].biases + m.at + b * 8);
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) {
        float* to = m.y + r * kSmallBatchTile + h * 8;
        __m256 sum = _mm256_fmadd_ps(_mm256_mul_ps(scale, _mm256_set1_ps(m.x_scales[r * m.stride + b])),
                                     _mm256_cvtepi32_ps(total[h][r]), _mm256_loadu_ps(to));
        _mm256_storeu_ps(to, _mm256_fmadd_ps(bias, _mm256_set1_ps(m.x_sums[r * m.stride + b]), sum));
      }
    }
  }
}

// Prefetches one step's share of the next tile of weight rows, which starts at row n. The rows of a tile are
// contiguous, and memory is requested in address order: requests that alternate between sixteen rows are served more
// slowly.
IG_INLINE void prefetch_tile(const Weights& w, int64_t n, int64_t k) {
  auto codes = reinterpret_cast<const char*>(w.codes + n * w.row_bytes() + k / 8 * w.bits * kSmallBatchTile);
  for (int i = 0; i < kStep / 8 * kSmallBatchTile * w.bits; i += 64) {
    _mm_prefetch(codes + i, _MM_HINT_T0);
  }
  const int shift = __builtin_ctz(unsigned(w.group)), size = w.scale_bytes();
  const int64_t at = (n * w.groups() + (k >> shift) * kSmallBatchTile) * size;
  const int bytes = (kStep >> shift) * kSmallBatchTile * size;  // 0 if a group is longer than a step
  for (int i = 0; i < bytes || i == 0; i += 64) {
    _mm_prefetch(static_cast<const char*>(w.scales) + at + i, _MM_HINT_T0);
    if (w.biases) {
      _mm_prefetch(static_cast<const char*>(w.biases) + at + i, _MM_HINT_T0);
    }
  }
}

// The general small-batch product: all integer formats, partial steps and partial tiles. The template arguments are
// those of small_batch_kernel.
template <int Fit, bool Nibbles, bool FP4>
static void small_batch_rows(const Weights& w, const Activations& x, int64_t n0, int64_t m0, int64_t m1, float* y) {
  const int block = x.layout.block, shift = __builtin_ctz(unsigned(block)), blocks = kStep >> shift;
  const int64_t stride = x.columns >> shift;
  RowStep s;
  // this step and the next, which is transposed while the products of this one execute
  TransposedStep<Fit == 0, Nibbles> transposed[2][2];
  Scales8 scales[2];
  auto prepare = [&](int64_t k, TransposedStep<Fit == 0, Nibbles>* t) __attribute__((always_inline)) {
    for (int h = 0; h < 2; h++) {
      find_step(w, n0 + h * 8, k, s);
      transpose_step(s, w, t[h]);
    }
    prefetch_tile(w, n0 + kSmallBatchTile, k);
  };
  __builtin_memset(y, 0, size_t(m1 - m0) * kSmallBatchTile * sizeof(float));
  prepare(0, transposed[0]);
  for (int64_t k = 0; k < x.columns; k += kStep) {
    if (k % kDepth == 0) {
      int columns = int(x.columns - k < kDepth ? x.columns - k : kDepth);
      eight_scales(w, n0, k, columns, block, scales[0]);
      eight_scales(w, n0 + 8, k, columns, block, scales[1]);
    }
    const TransposedStep<Fit == 0, Nibbles>* t = transposed[k / kStep % 2];
    if (k + kStep < x.columns) {
      prepare(k + kStep, transposed[k / kStep % 2 ^ 1]);
    }
    for (int64_t m = m0; m < m1; m += kRowsPerPass) {
      int rows = int(m1 - m < kRowsPerPass ? m1 - m : kRowsPerPass);
      int first = rows < kSmallBatchPanel ? rows : kSmallBatchPanel, second = rows - first;
      auto data = static_cast<const int32_t*>(x.data);
      auto data0 = data + packed_offset(x, m, k, first) / (Fit ? 4 : 2),
           data1 = data + packed_offset(x, m + first, k, second) / (Fit ? 4 : 2);
      SmallBatchOperands<Fit == 0, Nibbles> operands = {.weights = t,
                                              .scales = scales,
                                              .at = (int(k % kDepth) >> shift) * 8,
                                              .blocks = blocks,
                                              .data0 = data0,
                                              .data1 = nullptr,
                                              .x_scales = x.scales + m * stride + (k >> shift),
                                              .x_sums = x.sums + m * stride + (k >> shift),
                                              .stride = stride,
                                              .y = y + (m - m0) * kSmallBatchTile};
      auto multiply = [&](int n) __attribute__((always_inline)) {
        switch (n) {
          case 1:
            return small_batch_kernel<1, 0, Fit, Nibbles, FP4>(operands);
          case 2:
            return small_batch_kernel<2, 0, Fit, Nibbles, FP4>(operands);
          case 3:
            return small_batch_kernel<3, 0, Fit, Nibbles, FP4>(operands);
          case 4:
            return small_batch_kernel<4, 0, Fit, Nibbles, FP4>(operands);
        }
      };
      multiply(first);
      operands.data0 = data1;
      operands.x_scales += kSmallBatchPanel * stride;
      operands.x_sums += kSmallBatchPanel * stride;
      operands.y += kSmallBatchPanel * kSmallBatchTile;
      multiply(second);
    }
  }
}

// small_batch_rows for affine 4-bit codes, whole steps, a whole tile, and R0 + R1 rows in two panels. Blocks is the
// number of blocks in a step. All sizes are constants, so that the inner loop has no branches. avx2.h and
// avx512.h define it.
template <int R0, int R1, int Fit, int Blocks>
static void small_batch_whole_tile(const Weights& w, const Activations& x, int64_t n0, int64_t m0, float* y);

template <int Fit, int Blocks>
static void small_batch_whole_tile(const Weights& w, const Activations& x, int64_t n0, int64_t m0, int rows, float* y) {
  with_rows<kRowsPerPass>(rows, [&]<int R>() {
    constexpr int R0 = R < kSmallBatchPanel ? R : kSmallBatchPanel;
    small_batch_whole_tile<R0, R - R0, Fit, Blocks>(w, x, n0, m0, y);
  });
}

// Computes y[m-m0][j] = x[m] . W[n0+j] for rows [m0, m1) and j < 16. m0 is a multiple of kSmallBatchPanel.
static void small_batch_product(const Weights& w, const Activations& x, int64_t n0, int64_t m0, int64_t m1, float* y) {
  if (x.layout.mode == Mode::f32) {
    return float_batch_product(w, x, n0, m0, m1, y);
  }
  bool wide = x.layout.mode == Mode::i16;
  const int rows = int(m1 - m0);
  if (w.bits == 4 && w.format == Format::affine && x.layout.block >= kStep / 2 && rows <= kRowsPerPass &&
      n0 + kSmallBatchTile <= w.rows && w.columns % kStep == 0) {
    if (x.layout.block == kStep) {
      return wide ? small_batch_whole_tile<0, 1>(w, x, n0, m0, rows, y)
                  : small_batch_whole_tile<8, 1>(w, x, n0, m0, rows, y);
    }
    return wide ? small_batch_whole_tile<0, 2>(w, x, n0, m0, rows, y)
                : small_batch_whole_tile<8, 2>(w, x, n0, m0, rows, y);
  }
  if constexpr (kSaturates) {  // AVX-512 has no small batches of the other formats
    if (w.bits != 4) {
      return wide ? small_batch_rows<0, false, false>(w, x, n0, m0, m1, y)
                  : small_batch_rows<2, false, false>(w, x, n0, m0, m1, y);
    }
    if (w.format == Format::fp4) {
      return wide ? small_batch_rows<0, true, true>(w, x, n0, m0, m1, y)
                  : small_batch_rows<4, true, true>(w, x, n0, m0, m1, y);
    }
  }
  return wide ? small_batch_rows<0, true, false>(w, x, n0, m0, m1, y)
              : small_batch_rows<8, true, false>(w, x, n0, m0, m1, y);
}

}  // namespace ingot::cpu::INGOT_ISA
