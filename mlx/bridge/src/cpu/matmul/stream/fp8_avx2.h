// Row products of e4m3 weights with AVX2, in float32.
#pragma once

#include "cpu/matmul/stream/vector_avx2.h"

namespace ingot::cpu::INGOT_ISA {

// Converts eight e4m3 codes.
IG_INLINE __m256 load_e4m3(const uint8_t* p) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return upper_e4m3(_mm256_slli_epi32(_mm256_cvtepi8_epi32(bytes), 20));
}

// Converts 32 e4m3 codes as load_e4m3 does: vector j gets codes 4i + j. Shifts of words place the bits of 16 codes at a
// time, in the upper half of a float32 or where another shift brings them there.
IG_INLINE void e4m3_quarters(__m256i v, __m256* to) {
  const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 4), odd = _mm256_srai_epi16(v, 4);
  const __m256i all[4] = {_mm256_slli_epi32(even, 16), _mm256_slli_epi32(odd, 16), even, odd};
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    to[j] = upper_e4m3(all[j]);
  }
}

// Computes y[i] = x . W[n0+i] for i < stride and, if S is 2, y[stride+i] for weight row n0+stride+i: two streams use
// more of the memory bandwidth than one. Of each 32 columns of x, vector j has columns 4i + j (Layout::quarters).
template <int S>
static void fp8_streams(const Weights& w, const float* x, int64_t n0, int64_t stride, float* y) {
  constexpr int kGroup = 32;
  const int64_t groups = w.groups();
  for (int64_t r = 0; r < stride; r++) {
    const uint8_t *codes[S], *exponents[S];
    __m256 sum[S];
    alignas(32) float scales[S][kUnit];
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      codes[s] = w.codes + (n0 + s * stride + r) * w.columns;
      exponents[s] = static_cast<const uint8_t*>(w.scales) + (n0 + s * stride + r) * groups;
      sum[s] = _mm256_setzero_ps();
    }
    const float* v = x;
    // Adds the products of a group, the i-th of the unit.
    auto group = [&](const float* by, int i) __attribute__((always_inline)) {
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        if (i % 2 == 0) {
          _mm_prefetch(reinterpret_cast<const char*>(codes[s] + kPrefetchDistance), _MM_HINT_NTA);
        }
        __m256 q[4];
        e4m3_quarters(load_bytes(codes[s]), q);
        const __m256 a = _mm256_fmadd_ps(q[2], load(v + 16), q[0] * load(v));
        const __m256 b = _mm256_fmadd_ps(q[3], load(v + 24), q[1] * load(v + 8));
        sum[s] = _mm256_fmadd_ps(a + b, _mm256_broadcast_ss(by + s * kUnit + i), sum[s]);
        codes[s] += kGroup;
      }
      v += kGroup;
    };
    int64_t g = 0;
    for (; g + kUnit <= groups; g += kUnit) {
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        _mm256_store_ps(scales[s], load_scales<ScaleType::e8m0>(exponents[s], g));
      }
      const float* by = scales[0];
      IG_HIDE(by);
#pragma GCC unroll 8
      for (int i = 0; i < kUnit; i++) {
        group(by, i);
      }
    }
    if (g < groups) {
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        uint8_t copy[kUnit] = {};
        __builtin_memcpy(copy, exponents[s] + g, size_t(groups - g));
        _mm256_store_ps(scales[s], load_scales<ScaleType::e8m0>(copy, 0));
      }
      const float* by = scales[0];
      IG_HIDE(by);
#pragma GCC unroll 1
      for (int i = 0; g + i < groups; i++) {
        group(by, i);
      }
    }
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      y[s * stride + r] = add_lanes(sum[s]);
    }
  }
}

static void fp8_rows(const Weights& w, const float* x, int64_t n0, int64_t n1, float* y) {
  const int64_t half = (n1 - n0) / 2;
  fp8_streams<2>(w, x, n0, half, y);
  fp8_streams<1>(w, x, n0 + 2 * half, n1 - n0 - 2 * half, y + 2 * half);
}

// A row of e4m3 weights, as stream_floats reads it: half a group at a time.
struct FP8Row {
  static constexpr int kBytes = 2 * kLanes;  // that load reads

  const uint8_t *at, *scales;

  FP8Row(const Weights& w, int64_t n)
      : at(w.codes + n * w.columns), scales(static_cast<const uint8_t*>(w.scales) + n * w.groups()) {}
  inline __attribute__((always_inline)) void load(int64_t k, F& a, F& b) const {
    const F scale = set(power_of_two_bits(scales[k / 32]));
    a = load_e4m3(at + k) * scale;
    b = load_e4m3(at + k + 8) * scale;
  }
  F load_some(int64_t, int) const { return set(0); }  // rows have whole groups
};

}  // namespace ingot::cpu::INGOT_ISA
