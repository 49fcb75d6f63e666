// Products of a few activation rows on x86: sixteen rows of weights at a time go straight from their codes into sums, so that
// they are read once and nothing but the activations is read again; see cpu_matmul_kernels.h.
#pragma once

#include <immintrin.h>

#include "cpu_unpack_avx2.h"

namespace ingot::cpu::INGOT_ISA {

constexpr int kFewTile = 16;
constexpr int kFewBlock = 4;  // rows of activations whose sums fit in registers

#if defined(__AVX512VNNI__)
IG_INLINE __m256i few16(__m256i sum, __m256i w, __m256i x) { return _mm256_dpwssd_epi32(sum, w, x); }
IG_INLINE __m256i few8(__m256i sum, __m256i w, __m256i x) { return _mm256_dpbusd_epi32(sum, w, x); }
constexpr bool kNarrowSums = false;
#else
IG_INLINE __m256i few16(__m256i sum, __m256i w, __m256i x) { return _mm256_add_epi32(sum, _mm256_madd_epi16(w, x)); }
IG_INLINE __m256i few8(__m256i sum, __m256i w, __m256i x) { return _mm256_add_epi16(sum, _mm256_maddubs_epi16(w, x)); }
constexpr bool kNarrowSums = true;
#endif

// One step of eight weight rows, turned: dwords of eight four-bit codes, or of four bytes.
template <bool Nibbles>
struct Turned {
  static constexpr int kDwords = Nibbles ? 8 : 16;
  alignas(32) __m256i v[kDwords];
};

template <bool Nibbles>
IG_INLINE void turn(const RowStep& s, const Weights& w, const Spread& spread, Turned<Nibbles>& t) {
  for (int half = 0; half < Turned<Nibbles>::kDwords / 8; half++) {
    __m256i v[8];
#pragma GCC unroll 8
    for (int r = 0; r < 8; r++) {
      if (Nibbles || w.bits == 8) {
        v[r] = load_bytes(s.row(r) + half * 32);
      } else {
        v[r] = spread32(s.row(r) + half * 4 * w.bits, spread);
      }
    }
    transpose(v);
#pragma GCC unroll 8
    for (int r = 0; r < 8; r++) {
      t.v[half * 8 + r] = v[r];
    }
  }
}

// How dwords of codes become operands: the j-th of Operands<...>::kEach.
template <bool Wide, bool Nibbles, bool FP4>
struct Operands {
  static constexpr int kEach = (Wide ? 2 : 1) * (Nibbles ? 2 : 1);

  static inline __attribute__((always_inline)) __m256i get(__m256i v, int j) {
    if (!Nibbles) {
      if (!Wide) {
        return v;
      }
      const __m128i even = _mm_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1);
      const __m128i odd = _mm_setr_epi8(2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1);
      return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(j ? odd : even));
    }
    __m256i q = _mm256_and_si256(_mm256_srli_epi32(v, 4 * j), _mm256_set1_epi32(Wide ? 0x000f000f : 0x0f0f0f0f));
    if (FP4) {
      q = _mm256_shuffle_epi8(fp4_table(), Wide ? _mm256_or_si256(q, _mm256_set1_epi32(int(0x80008000))) : q);
    }
    return q;
  }
};

// What a step of sixteen weight rows is, ready to be multiplied.
template <bool Nibbles>
struct FewStep {
  Turned<Nibbles> half[2];
};

// Adds to y[r][0..16) of R rows what a step gives; data holds its dwords of [columns/2 or /4][R], by and sums the first
// row's scales and sums of this step. Fit is how many int8 sums fit in 16 bits, 0 for int16.
template <int R, int Fit, bool Nibbles, bool FP4>
IG_INLINE void few_block(const FewStep<Nibbles>& t, const Scales8* scales, int c, int blocks, const int32_t* data,
                         const float* by, const float* sums, int64_t stride, float* y) {
  using Op = Operands<Fit == 0, Nibbles, FP4>;
  constexpr bool narrow = Fit != 0 && kNarrowSums;
  constexpr int kRun = narrow ? Fit / Op::kEach : 1;  // dwords that are summed before they are widened
  const int dwords = Turned<Nibbles>::kDwords / blocks;
  const __m256i* v0 = t.half[0].v;
  const __m256i* v1 = t.half[1].v;
#pragma GCC unroll 1
  for (int b = 0; b < blocks; b++) {
    IG_BARRIER();
    __m256i total[R][2];
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
      total[r][0] = total[r][1] = _mm256_setzero_si256();
    }
#pragma GCC unroll 1
    for (int d = 0; d < dwords; d += kRun) {
      if constexpr (!narrow) {
#pragma GCC unroll 4
        for (int j = 0; j < Op::kEach; j++) {
          __m256i q0 = Op::get(v0[d], j), q1 = Op::get(v1[d], j);
#pragma GCC unroll 4
          for (int r = 0; r < R; r++) {
            __m256i a = _mm256_set1_epi32(data[j * R + r]);
            total[r][0] = Fit ? few8(total[r][0], q0, a) : few16(total[r][0], q0, a);
            total[r][1] = Fit ? few8(total[r][1], q1, a) : few16(total[r][1], q1, a);
            IG_KEEP(total[r][0]);
            IG_KEEP(total[r][1]);
          }
        }
      } else {
        __m256i part[R][2];
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
          part[r][0] = part[r][1] = _mm256_setzero_si256();
        }
#pragma GCC unroll 4
        for (int i = 0; i < kRun; i++) {
#pragma GCC unroll 2
          for (int j = 0; j < Op::kEach; j++) {
            __m256i q0 = Op::get(v0[d + i], j), q1 = Op::get(v1[d + i], j);
#pragma GCC unroll 4
            for (int r = 0; r < R; r++) {
              __m256i a = _mm256_set1_epi32(data[(i * Op::kEach + j) * R + r]);
              part[r][0] = few8(part[r][0], q0, a);
              part[r][1] = few8(part[r][1], q1, a);
              IG_KEEP(part[r][0]);
              IG_KEEP(part[r][1]);
            }
          }
        }
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
          total[r][0] = _mm256_add_epi32(total[r][0], _mm256_madd_epi16(part[r][0], _mm256_set1_epi16(1)));
          total[r][1] = _mm256_add_epi32(total[r][1], _mm256_madd_epi16(part[r][1], _mm256_set1_epi16(1)));
        }
      }
      data += kRun * Op::kEach * R;
    }
    v0 += dwords;
    v1 += dwords;
    IG_BARRIER();
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
      __m256 scale = _mm256_load_ps(scales[h].scales + (c + b) * 8), bias = _mm256_load_ps(scales[h].biases + (c + b) * 8);
#pragma GCC unroll 4
      for (int r = 0; r < R; r++) {
        float* to = y + r * kFewTile + h * 8;
        __m256 sum = _mm256_fmadd_ps(_mm256_mul_ps(scale, _mm256_set1_ps(by[r * stride + b])), _mm256_cvtepi32_ps(total[r][h]),
                                     _mm256_loadu_ps(to));
        _mm256_storeu_ps(to, _mm256_fmadd_ps(bias, _mm256_set1_ps(sums[r * stride + b]), sum));
      }
    }
  }
}

template <int Fit, bool Nibbles, bool FP4>
static void few_rows(const Weights& w, const Activations& x, int64_t n0, int64_t m0, int64_t m1, int64_t k0, int64_t k1, float* y) {
  const int block = x.layout.block, shift = __builtin_ctz(unsigned(block)), blocks = kStep >> shift;
  const int64_t stride = x.columns >> shift;
  const Spread spread = make_spread(!Nibbles && w.bits < 8 ? w.bits : 2);
  const int64_t next = kFewTile * w.row_bytes();
  RowStep s;
  FewStep<Nibbles> turned[2];  // this step and the next, which is turned while the products of this one are at work
  Scales8 scales[2];
  auto prepare = [&](int64_t k, FewStep<Nibbles>& t) __attribute__((always_inline)) {
    for (int h = 0; h < 2; h++) {
      find_step(w, n0 + h * 8, k, s);
      if (!Nibbles || k % (2 * kStep) == 0) {  // a line is two steps of four-bit codes
#pragma GCC unroll 8
        for (int r = 0; r < 8; r++) {
          _mm_prefetch(reinterpret_cast<const char*>(s.row(r) + next), _MM_HINT_T1);
        }
      }
      turn(s, w, spread, t.half[h]);
    }
  };
  prepare(k0, turned[0]);
  for (int64_t k = k0; k < k1; k += kStep) {
    if ((k - k0) % kDepth == 0) {
      int columns = int(x.columns - k < kDepth ? x.columns - k : kDepth);
      eight_scales(w, n0, k, columns, block, scales[0]);
      eight_scales(w, n0 + 8, k, columns, block, scales[1]);
    }
    const FewStep<Nibbles>& t = turned[(k - k0) / kStep % 2];
    if (k + kStep < k1) {
      prepare(k + kStep, turned[(k - k0) / kStep % 2 ^ 1]);
    }
    const int c = int((k - k0) % kDepth) >> shift;
    for (int64_t m = m0; m < m1; m += kFewBlock) {
      int rows = int(x.rows - m < kFewBlock ? x.rows - m : kFewBlock);
      auto data = static_cast<const int32_t*>(x.data) + place(x, m, k, rows) / (Fit ? 4 : 2);
      const float* by = x.scales + m * stride + (k >> shift);
      const float* sums = x.sums + m * stride + (k >> shift);
      float* to = y + (m - m0) * kFewTile;
      switch (rows) {
        case 1:
          few_block<1, Fit, Nibbles, FP4>(t, scales, c, blocks, data, by, sums, stride, to);
          break;
        case 2:
          few_block<2, Fit, Nibbles, FP4>(t, scales, c, blocks, data, by, sums, stride, to);
          break;
        case 3:
          few_block<3, Fit, Nibbles, FP4>(t, scales, c, blocks, data, by, sums, stride, to);
          break;
        default:
          few_block<4, Fit, Nibbles, FP4>(t, scales, c, blocks, data, by, sums, stride, to);
      }
    }
  }
}

// Adds to y[m-m0][0..16) of rows [m0, m1) and weight rows n0 to n0+15 what columns [k0, k1) give; k0 is a multiple of
// kDepth, m0 of kFewBlock.
static void few_product(const Weights& w, const Activations& x, int64_t n0, int64_t m0, int64_t m1, int64_t k0, int64_t k1, float* y) {
  bool wide = x.layout.mode == Mode::i16;
  if (w.bits != 4) {
    return wide ? few_rows<0, false, false>(w, x, n0, m0, m1, k0, k1, y) : few_rows<2, false, false>(w, x, n0, m0, m1, k0, k1, y);
  }
  if (w.format == Format::fp4) {
    return wide ? few_rows<0, true, true>(w, x, n0, m0, m1, k0, k1, y) : few_rows<4, true, true>(w, x, n0, m0, m1, k0, k1, y);
  }
  return wide ? few_rows<0, true, false>(w, x, n0, m0, m1, k0, k1, y) : few_rows<8, true, false>(w, x, n0, m0, m1, k0, k1, y);
}

}  // namespace ingot::cpu::INGOT_ISA
