// The peaks and sums of blocks of activations on x86, from which pack_x86.h gets their scales.
#pragma once

#include <immintrin.h>

#include "cpu/simd/simd.h"

namespace ingot::cpu::INGOT_ISA {

// Combines the lanes of eight vectors: lane i of the result is of((v0 v4) (v2 v6)) ((v1 v5) (v3 v7)) of vector i, where
// of takes two vectors.
template <class Of>
IG_INLINE __m256 combine_each(const __m256* v, Of of) {
  auto halves = [&](int i) __attribute__((always_inline)) {  // of vectors i and i + 4
    return of(_mm256_permute2f128_ps(v[i], v[i + 4], 0x20), _mm256_permute2f128_ps(v[i], v[i + 4], 0x31));
  };
  auto pairs = [&](__m256 a, __m256 b) __attribute__((always_inline)) {
    const __m256d p = _mm256_castps_pd(a), q = _mm256_castps_pd(b);
    return of(_mm256_castpd_ps(_mm256_unpacklo_pd(p, q)), _mm256_castpd_ps(_mm256_unpackhi_pd(p, q)));
  };
  const __m256 a = pairs(halves(0), halves(1)), b = pairs(halves(2), halves(3));
  return of(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd));
}

// Computes the largest magnitudes and the sums of eight consecutive blocks of Block floats. A NaN is always in the sum,
// but not always in the peak.
template <int Block>
IG_INLINE void peaks_and_sums(const float* x, __m256& peaks, __m256& sums) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  __m256 peak[8], sum[8];
#pragma GCC unroll 8
  for (int b = 0; b < 8; b++) {
    peak[b] = sum[b] = _mm256_setzero_ps();
#pragma GCC unroll 8
    for (int i = 0; i < Block; i += 8) {
      const __m256 v = _mm256_loadu_ps(x + b * Block + i);
      peak[b] = _mm256_max_ps(peak[b], _mm256_andnot_ps(sign, v));
      sum[b] = _mm256_add_ps(sum[b], v);
    }
  }
  peaks = combine_each(peak, [](__m256 a, __m256 b) __attribute__((always_inline)) { return _mm256_max_ps(a, b); });
  sums = combine_each(sum, [](__m256 a, __m256 b) __attribute__((always_inline)) { return _mm256_add_ps(a, b); });
}

// The scales of eight blocks: activation = scale * integer, with integers of at most max_code.
struct BlockScales {
  __m256 scales, inverses, sums;

  // If keeps_nan, a block that contains a NaN has NaN as its scale. Otherwise only its sum is NaN, and takes it to the
  // results.
  inline __attribute__((always_inline)) BlockScales(__m256 peaks, __m256 sums, float max_code, bool keeps_nan)
      : sums(sums) {
    if (keeps_nan) {
      peaks = _mm256_blendv_ps(peaks, sums, _mm256_cmp_ps(sums, sums, _CMP_UNORD_Q));
    }
    // A block with a smaller peak contributes nothing to a sum, and its inverse scale would be infinite.
    const __m256 least = _mm256_set1_ps(1e-33f), most = _mm256_set1_ps(max_code);
    scales = _mm256_and_ps(_mm256_div_ps(peaks, most), _mm256_cmp_ps(peaks, least, _CMP_NLE_UQ));
    inverses = _mm256_and_ps(_mm256_div_ps(most, peaks), _mm256_cmp_ps(peaks, least, _CMP_GT_OQ));
  }
};

}  // namespace ingot::cpu::INGOT_ISA
