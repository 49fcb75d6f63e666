// Products of a few activation rows on x86: eight rows of weights at a time go straight from their codes into sums, so that
// they are read once and nothing but the activations is read again; see cpu_matmul_kernels.h.
#pragma once

#include <immintrin.h>

#include "cpu_unpack_avx2.h"

namespace ingot::cpu::INGOT_ISA {

constexpr int kFewRows = 8;

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

// Adds to y[r][0..8) of R rows what columns [k0, k1) give. x holds dwords of [columns/2 or /4][R]; Fit is how many int8
// sums fit in 16 bits, 0 for int16; Block is that of the activations, 0 where it is not known.
template <int R, int Fit, bool Nibbles, bool FP4, int Block>
static void few_rows(const Weights& w, const Activations& x, int64_t n0, int64_t m, int64_t k0, int64_t k1, float* y) {
  using Op = Operands<Fit == 0, Nibbles, FP4>;
  constexpr bool narrow = Fit != 0 && kNarrowSums;
  const int block = Block ? Block : x.layout.block, blocks = kStep / block;
  const int dwords = Turned<Nibbles>::kDwords / blocks;
  const int64_t stride = x.columns / block;
  const int32_t* data = nullptr;
  const Spread spread = make_spread(!Nibbles && w.bits < 8 ? w.bits : 2);
  const int64_t next = 8 * w.row_bytes();
  const float* by = x.scales + m * stride + k0 / block;
  const float* sums = x.sums + m * stride + k0 / block;
  RowStep s;
  Turned<Nibbles> turned[2];  // this step and the next, which is turned while the products of this one are at work
  Scales8 scales;
  int c = 0;  // block within the scales
  auto prepare = [&](int64_t k, Turned<Nibbles>& t) __attribute__((always_inline)) {
    find_step(w, n0, k, s);
    if (!Nibbles || k % (2 * kStep) == 0) {  // a line is two steps of four-bit codes
#pragma GCC unroll 8
      for (int r = 0; r < 8; r++) {
        _mm_prefetch(reinterpret_cast<const char*>(s.row(r) + next), _MM_HINT_T1);
      }
    }
    turn(s, w, spread, t);
  };
  prepare(k0, turned[0]);
  for (int64_t k = k0; k < k1; k += kStep) {
    if ((k - k0) % kDepth == 0) {
      eight_scales(w, n0, k, int(x.columns - k < kDepth ? x.columns - k : kDepth), block, scales);
      c = 0;
      data = static_cast<const int32_t*>(x.data) + place(x, m, k, R) / (Fit ? 4 : 2);
    }
    const __m256i* v = turned[(k - k0) / kStep % 2].v;
    if (k + kStep < k1) {
      prepare(k + kStep, turned[(k - k0) / kStep % 2 ^ 1]);
    }
#pragma GCC unroll 1
    for (int b = 0; b < blocks; b++) {
      IG_BARRIER();
      __m256i total[R];
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) {
        total[r] = _mm256_setzero_si256();
      }
      if constexpr (!narrow) {
#pragma GCC unroll 1
        for (int d = 0; d < dwords; d++) {
#pragma GCC unroll 4
          for (int j = 0; j < Op::kEach; j++) {
            __m256i q = Op::get(v[d], j);
#pragma GCC unroll 8
            for (int r = 0; r < R; r++) {
              __m256i a = _mm256_set1_epi32(data[j * R + r]);
              total[r] = Fit ? few8(total[r], q, a) : few16(total[r], q, a);
              IG_KEEP(total[r]);
            }
          }
          data += Op::kEach * R;
        }
      } else {
        constexpr int kDwordsThatFit = Fit / Op::kEach;
#pragma GCC unroll 1
        for (int d = 0; d < dwords; d += kDwordsThatFit) {
          __m256i part[R];
#pragma GCC unroll 8
          for (int r = 0; r < R; r++) {
            part[r] = _mm256_setzero_si256();
          }
#pragma GCC unroll 4
          for (int i = 0; i < kDwordsThatFit; i++) {
#pragma GCC unroll 2
            for (int j = 0; j < Op::kEach; j++) {
              __m256i q = Op::get(v[d + i], j);
#pragma GCC unroll 8
              for (int r = 0; r < R; r++) {
                part[r] = few8(part[r], q, _mm256_set1_epi32(data[(i * Op::kEach + j) * R + r]));
                IG_KEEP(part[r]);
              }
            }
          }
          data += kDwordsThatFit * Op::kEach * R;
#pragma GCC unroll 8
          for (int r = 0; r < R; r++) {
            total[r] = _mm256_add_epi32(total[r], _mm256_madd_epi16(part[r], _mm256_set1_epi16(1)));
          }
        }
      }
      v += dwords;
      IG_BARRIER();
      __m256 scale = _mm256_load_ps(scales.scales + c * 8), bias = _mm256_load_ps(scales.biases + c * 8);
      c++;
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) {
        __m256 sum = _mm256_fmadd_ps(_mm256_mul_ps(scale, _mm256_set1_ps(by[r * stride])), _mm256_cvtepi32_ps(total[r]),
                                     _mm256_loadu_ps(y + r * 8));
        _mm256_storeu_ps(y + r * 8, _mm256_fmadd_ps(bias, _mm256_set1_ps(sums[r * stride]), sum));
      }
      by++;
      sums++;
    }
  }
}

template <int Fit, bool Nibbles, bool FP4, int Block>
static void few_switch(const Weights& w, const Activations& x, int64_t n0, int64_t m, int rows, int64_t k0, int64_t k1, float* y) {
  switch (rows) {
    case 2:
      return few_rows<2, Fit, Nibbles, FP4, Block>(w, x, n0, m, k0, k1, y);
    case 4:
      return few_rows<4, Fit, Nibbles, FP4, Block>(w, x, n0, m, k0, k1, y);
    case 6:
      return few_rows<6, Fit, Nibbles, FP4, Block>(w, x, n0, m, k0, k1, y);
    default:
      return few_rows<8, Fit, Nibbles, FP4, Block>(w, x, n0, m, k0, k1, y);
  }
}

// Adds to y[r][0..8), of the block of rows (an even number) that begins at row m and weight rows n0 to n0+7, what columns
// [k0, k1) give; k0 is a multiple of kDepth.
static void few_product(const Weights& w, const Activations& x, int64_t n0, int64_t m, int rows, int64_t k0, int64_t k1, float* y) {
  bool wide = x.layout.mode == Mode::i16;
  if (w.bits != 4) {
    return wide ? few_switch<0, false, false, 0>(w, x, n0, m, rows, k0, k1, y)
                : few_switch<2, false, false, 0>(w, x, n0, m, rows, k0, k1, y);
  }
  if (w.format == Format::fp4) {
    return wide ? few_switch<0, true, true, 0>(w, x, n0, m, rows, k0, k1, y)
                : few_switch<4, true, true, 0>(w, x, n0, m, rows, k0, k1, y);
  }
  if (x.layout.block == 64) {
    return wide ? few_switch<0, true, false, 64>(w, x, n0, m, rows, k0, k1, y)
                : few_switch<8, true, false, 64>(w, x, n0, m, rows, k0, k1, y);
  }
  return wide ? few_switch<0, true, false, 0>(w, x, n0, m, rows, k0, k1, y)
              : few_switch<8, true, false, 0>(w, x, n0, m, rows, k0, k1, y);
}

}  // namespace ingot::cpu::INGOT_ISA
