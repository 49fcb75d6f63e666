// Row products with AVX2; see vector_x86.h.
#pragma once

#include "cpu/matmul/stream/vector_x86.h"

namespace ingot::cpu::INGOT_ISA {

// Scales are loaded eight at a time, one for each block of columns (Layout::block).
constexpr int kUnit = 8;

// Two float32 that are loaded as 64 bits.
using TwoFloats [[gnu::may_alias, gnu::aligned(4)]] = double;

// Returns the scales of n blocks of a weight row, at most eight, times those of the activations, from block b on; other
// lanes are zero. Adds bias * activation sum of these blocks to added, or scale * sum if w has no biases.
template <ScaleType T, int Group>
IG_INLINE __m256 unit_scales(const Weights& w, int64_t row, const Activations& x, int64_t b, int64_t n,
                             __m256& added) {
  constexpr bool kBiases = T != ScaleType::e8m0 && T != ScaleType::e4m3;
  constexpr int kPerGroup = Group > kStep ? Group / kStep : 1;  // blocks
  const int64_t at = row * w.groups() + b / kPerGroup;
  // Vectors read into the next row, but not past the matrix.
  const bool whole = kPerGroup == 1 && n >= kUnit;
  const bool inside = whole || __builtin_expect(at + kUnit <= w.rows * w.groups(), 1);
  auto load = [&](const void* p) __attribute__((always_inline)) {
    __m256 v;
    if (inside) {
      v = load_scales<T>(p, at);
    } else {
      alignas(32) uint8_t copy[kUnit * 4] = {};
      const auto size = size_t(w.scale_bytes());
      __builtin_memcpy(copy, static_cast<const uint8_t*>(p) + size_t(at) * size,
                       size_t(n < kUnit ? n : kUnit) / kPerGroup * size);
      v = load_scales<T>(copy, 0);
    }
    return kPerGroup == 1 ? v : _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
  };
  __m256 s = load(w.scales), bias = kBiases ? load(w.biases) : s;
  if (n >= kUnit) {
    added = _mm256_fmadd_ps(bias, _mm256_loadu_ps(x.sums + b), added);
    return _mm256_mul_ps(s, _mm256_loadu_ps(x.scales + b));
  }
  const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(int(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  const __m256 lanes = _mm256_castsi256_ps(mask);
  added = _mm256_fmadd_ps(_mm256_and_ps(bias, lanes), _mm256_maskload_ps(x.sums + b, mask), added);
  return _mm256_mul_ps(_mm256_and_ps(s, lanes), _mm256_maskload_ps(x.scales + b, mask));
}

// Returns the scales of consecutive blocks, 1, 2 or 4, each in an equal share of the lanes. The load broadcasts, so no
// shuffle crosses the halves of a vector, which would take two operations.
template <int Blocks>
IG_INLINE __m256 lane_scales(const float* of) {
  if constexpr (Blocks == 1) {
    return _mm256_broadcast_ss(of);
  } else if constexpr (Blocks == 2) {
    const __m256d both = _mm256_set1_pd(*reinterpret_cast<const TwoFloats*>(of));
    return _mm256_permutevar_ps(_mm256_castpd_ps(both), _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
  } else {
    const __m256 four = _mm256_broadcast_ps(reinterpret_cast<const __m128*>(of));
    return _mm256_permutevar_ps(four, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
  }
}

// Unpacks 64 affine 4-bit codes to four vectors of int16.
IG_INLINE void nibble_words(__m256i v, __m256i* q) {
  const __m256i mask = _mm256_set1_epi16(15);
  q[0] = _mm256_and_si256(v, mask);
  q[1] = _mm256_and_si256(_mm256_srli_epi16(v, 4), mask);
  q[2] = _mm256_and_si256(_mm256_srli_epi16(v, 8), mask);
  q[3] = _mm256_srli_epi16(v, 12);
}

// Unpacks 64 4-bit codes to two vectors of bytes.
template <bool FP4>
IG_INLINE void nibble_bytes(__m256i v, __m256i* q) {
  const __m256i mask = _mm256_set1_epi8(15);
  q[0] = _mm256_and_si256(v, mask);
  q[1] = _mm256_and_si256(_mm256_srli_epi16(v, 4), mask);
  if (FP4) {
    q[0] = _mm256_shuffle_epi8(fp4_table(), q[0]);
    q[1] = _mm256_shuffle_epi8(fp4_table(), q[1]);
  }
}

// Returns the products of 64 unpacked codes with an activation row as eight sums, one for each eight codes.
IG_INLINE __m256i word_sums(const __m256i* q, const __m256i* x) {
  __m256i a = _mm256_madd_epi16(q[0], load_bytes(x)), b = _mm256_madd_epi16(q[2], load_bytes(x + 2));
  return _mm256_add_epi32(add16(a, q[1], load_bytes(x + 1)), add16(b, q[3], load_bytes(x + 3)));
}

// word_sums for two vectors of bytes, whose four products at most, of codes up to 24, fit in 16 bits. Activations are
// int8, or the high and then the low bytes of int16: products of bytes are half as many instructions as unpacking to
// int16, and the sum of both parts is exact.
template <Integers Kind>
IG_INLINE __m256i byte_sums(const __m256i* q, const __m256i* x) {
  const __m256i t = add8(_mm256_maddubs_epi16(q[0], load_bytes(x)), q[1], load_bytes(x + 1));
  if constexpr (Kind == Integers::bytes) {
    return _mm256_madd_epi16(t, _mm256_set1_epi16(1));
  }
  const __m256i low = add8(_mm256_maddubs_epi16(q[0], load_bytes(x + 2)), q[1], load_bytes(x + 3));
  return widened(_mm256_madd_epi16(t, _mm256_set1_epi16(256)), low);
}

// Computes y[i] = x . W[n0+i] for i < stride and, if S is 2, y[stride+i] for weight row n0+stride+i, of 4-bit codes:
// two streams use more of the memory bandwidth than one.
template <Integers Kind, bool FP4, ScaleType T, int Group, int S>
static void nibble_rows(const Weights& w, const Activations& x, int64_t n0, int64_t stride, float* y) {
  constexpr int kVectors = Kind == Integers::bytes ? 2 : 4;  // of activations, for a step
  // A lane has eight columns of a step.
  constexpr int kBlock = Group < kStep ? Group : kStep, kBlocks = kStep / kBlock, kSteps = kUnit / kBlocks;
  const int64_t bytes = w.row_bytes(), blocks = w.columns / kBlock;
  for (int64_t r = 0; r < stride; r++) {
    const uint8_t* codes[S];
    __m256 sum[S], added[S];
    alignas(32) float scales[S][kUnit];
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      codes[s] = w.codes + (n0 + s * stride + r) * bytes;
      sum[s] = added[s] = _mm256_setzero_ps();
    }
    auto v = static_cast<const __m256i*>(x.data);
    auto read_scales = [&](int64_t b, int64_t n) __attribute__((always_inline)) {
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        _mm256_store_ps(scales[s], unit_scales<T, Group>(w, n0 + s * stride + r, x, b, n, added[s]));
      }
    };
    // Adds the products of a step, the i-th of the unit.
    auto add = [&](int s, __m256i q, const float* by, int i) __attribute__((always_inline)) {
      __m256i codes[2];
      nibble_bytes<FP4>(q, codes);
      const __m256 products = _mm256_cvtepi32_ps(byte_sums<Kind>(codes, v));
      sum[s] = _mm256_fmadd_ps(products, lane_scales<kBlocks>(by + i * kBlocks), sum[s]);
    };
    auto step = [&](const float* by, int i) __attribute__((always_inline)) {
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        add(s, load_bytes(codes[s]), by + s * kUnit, i);
        codes[s] += kStep / 2;
      }
      v += kVectors;
    };
    auto prefetch_codes = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        // weights are read once and must not evict activations
        _mm_prefetch(reinterpret_cast<const char*>(codes[s] + kPrefetchDistance), _MM_HINT_NTA);
      }
    };
    int64_t b = 0;
    for (; b + kUnit <= blocks; b += kUnit) {
      read_scales(b, kUnit);
      const float* by = scales[0];
      IG_HIDE(by);
#pragma GCC unroll 8
      for (int i = 0; i < kSteps; i++) {
        if (i % 2 == 0) {
          prefetch_codes();
        }
        step(by, i);
      }
    }
    if (b < blocks) {
      read_scales(b, blocks - b);
      const float* by = scales[0];
      IG_HIDE(by);
      int64_t left = w.columns - b * kBlock;
      int i = 0;
      for (; left >= kStep; left -= kStep) {
        prefetch_codes();
        step(by, i++);
      }
      if (left > 0) {
#pragma GCC unroll 2
        for (int s = 0; s < S; s++) {
          alignas(32) uint8_t copy[kStep / 2] = {};
          __builtin_memcpy(copy, codes[s], size_t(left / 2));
          add(s, load_bytes(copy), by + s * kUnit, i);
        }
      }
    }
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      // fp4 is affine in the unpacked codes: weight = scale/2 * code - 6 * scale (see kFP4)
      y[s * stride + r] = add_lanes(FP4 ? sum[s] * 0.5f - added[s] * 6.0f : sum[s] + added[s]);
    }
  }
}

template <bool Wide>
static void nibble_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  constexpr Integers kKind = Wide ? Integers::halves : Integers::bytes;
  with_nibbles(w, [&]<bool FP4, ScaleType T, int Group>() {
    const int64_t half = (n1 - n0) / 2;
    nibble_rows<kKind, FP4, T, Group, 2>(w, x, n0, half, y);
    nibble_rows<kKind, FP4, T, Group, 1>(w, x, n0 + 2 * half, n1 - n0 - 2 * half, y + 2 * half);
  });
}

// Calls unit_scales for the matrix's type of scales.
template <int Group>
IG_INLINE __m256 any_unit_scales(const Weights& w, int64_t row, const Activations& x, int64_t b, int64_t n,
                                 __m256& added) {
  switch (w.scale_type) {
    case ScaleType::f16:
      return unit_scales<ScaleType::f16, Group>(w, row, x, b, n, added);
    case ScaleType::bf16:
      return unit_scales<ScaleType::bf16, Group>(w, row, x, b, n, added);
    default:
      return unit_scales<ScaleType::f32, Group>(w, row, x, b, n, added);
  }
}

// Row product of codes that are bytes: computes y[i] = x . W[n0+i] for i < stride and, if S is 2, y[stride+i] for
// weight row n0+stride+i: two rows share the loads of activations, and two streams use more of the memory bandwidth
// than one.
template <int Group, int S>
static void byte_rows(const Weights& w, const Activations& x, int64_t n0, int64_t stride, float* y) {
  constexpr int kBlock = Group < kStep ? Group : kStep, kVectors = kBlock / 16;
  const int64_t blocks = w.columns / kBlock;
  for (int64_t r = 0; r < stride; r++) {
    const uint8_t* codes[S];
    __m256 sum[S], added[S];
    alignas(32) float scales[S][kUnit];
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      codes[s] = w.codes + (n0 + s * stride + r) * w.columns;
      sum[s] = added[s] = _mm256_setzero_ps();
    }
    auto v = static_cast<const __m256i*>(x.data);
    auto read_scales = [&](int64_t b, int64_t n) __attribute__((always_inline)) {
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        _mm256_store_ps(scales[s], any_unit_scales<Group>(w, n0 + s * stride + r, x, b, n, added[s]));
      }
    };
    // Adds the products of a block, the i-th of the unit: of each 32 columns the even ones, then the odd ones.
    auto block = [&](const float* by, int i) __attribute__((always_inline)) {
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        if (kBlock == kStep || i % 2 == 0) {
          _mm_prefetch(reinterpret_cast<const char*>(codes[s] + kPrefetchDistance), _MM_HINT_NTA);
        }
        __m256i t[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
#pragma GCC unroll 4
        for (int j = 0; j < kVectors; j += 2) {
          const __m256i q = load_bytes(codes[s] + j * 16);
          t[0] = add16(t[0], _mm256_and_si256(q, _mm256_set1_epi16(255)), load_bytes(v + j));
          t[1] = add16(t[1], _mm256_srli_epi16(q, 8), load_bytes(v + j + 1));
        }
        const __m256 products = _mm256_cvtepi32_ps(_mm256_add_epi32(t[0], t[1]));
        sum[s] = _mm256_fmadd_ps(products, _mm256_broadcast_ss(by + s * kUnit + i), sum[s]);
        codes[s] += kBlock;
      }
      v += kVectors;
    };
    int64_t b = 0;
    for (; b + kUnit <= blocks; b += kUnit) {
      read_scales(b, kUnit);
      const float* by = scales[0];
      IG_HIDE(by);
#pragma GCC unroll 8
      for (int i = 0; i < kUnit; i++) {
        block(by, i);
      }
    }
    if (b < blocks) {
      read_scales(b, blocks - b);
      const float* by = scales[0];
      IG_HIDE(by);
      for (int i = 0; b + i < blocks; i++) {
        block(by, i);
      }
    }
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      y[s * stride + r] = add_lanes(sum[s] + added[s]);
    }
  }
}

static void byte_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  with_group(w, [&]<int Group>() {
    const int64_t half = (n1 - n0) / 2;
    byte_rows<Group, 2>(w, x, n0, half, y);
    byte_rows<Group, 1>(w, x, n0 + 2 * half, n1 - n0 - 2 * half, y + 2 * half);
  });
}

}  // namespace ingot::cpu::INGOT_ISA
