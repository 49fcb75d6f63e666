// Row products of 4-bit codes with AVX-512; see vector_x86.h. A vector holds two interleaved steps, which halves
// the number of instructions.
#pragma once

#include "cpu/matmul/vector_x86.h"

namespace ingot::cpu::INGOT_ISA {

// Computes y[i] = x . W[n0+i] for i < stride and, if S is 2, y[stride+i] for weight row n0+stride+i.
template <bool Wide, ScaleType T, int S>
static void paired_rows(const Weights& w, const Activations& x, int64_t n0, int64_t stride, float* y) {
  constexpr int kVectors = Wide ? 4 : 2;
  const __m512i mask = _mm512_set1_epi8(15);
  __m512i which[4];  // lanes of a pair's scales: the first group's in the lower half, the second's in the upper
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    which[i] = _mm512_inserti64x4(_mm512_set1_epi32(2 * i), _mm256_set1_epi32(2 * i + 1), 1);
  }
  const int64_t groups = w.groups(), bytes = w.row_bytes();
  for (int64_t r = 0; r < stride; r++) {
    const uint8_t* codes[S];
    int64_t at[S];
    __m512 sum[S];
    __m256 added[S];
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      codes[s] = w.codes + (n0 + s * stride + r) * bytes;
      at[s] = (n0 + s * stride + r) * groups;
      sum[s] = _mm512_setzero_ps();
      added[s] = _mm256_setzero_ps();
    }
    auto v = static_cast<const __m512i*>(x.data);
    // Adds the products of N pairs of groups of each stream; scales are theirs.
    auto pairs = [&]<int N>(const __m512* scales) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int i = 0; i < N; i++) {
#pragma GCC unroll 2
        for (int s = 0; s < S; s++) {
          // weights are read once and must not evict activations
          _mm_prefetch(reinterpret_cast<const char*>(codes[s] + kPrefetchDistance), _MM_HINT_NTA);
          __m512i q = _mm512_loadu_si512(codes[s]);
          IG_KEEP(q);  // otherwise GCC loads it twice
          __m512i low = _mm512_and_si512(q, mask), high = _mm512_and_si512(_mm512_srli_epi16(q, 4), mask);
          __m512i t = dot8(dot8(zeros(), low, load_lanes(v)), high, load_lanes(v + 1));
          if constexpr (Wide) {
            t = dot8(dot8(_mm512_slli_epi32(t, 8), low, load_lanes(v + 2)), high, load_lanes(v + 3));
          }
          sum[s] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(t), _mm512_permutexvar_ps(which[i], scales[s]), sum[s]);
          codes[s] += 64;
        }
        v += kVectors;
      }
    };
    int64_t g = 0;
    auto groups_at_once = [&]<int N>() __attribute__((always_inline)) {
      __m512 scales[S];
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        scales[s] = _mm512_castps256_ps512(group_scales<T, N>(w, at[s] + g, x, g, added[s]));
      }
      pairs.template operator()<N / 2>(scales);
      g += N;
    };
    while (g + 8 <= groups) {
      groups_at_once.template operator()<8>();
    }
    if (g + 4 <= groups) {  // the matrices of experts have few columns
      groups_at_once.template operator()<4>();
    }
    // The last groups, fewer than four: a vector load of their scales would read past the row.
    float left[S][4] = {}, rest[S] = {};
    __m512 scales[S];
    for (int s = 0; s < S; s++) {
      for (int i = 0; g + i < groups; i++) {
        left[s][i] = scale_of<T>(w.scales, at[s] + g + i) * x.scales[g + i];
        rest[s] += scale_of<T>(w.biases, at[s] + g + i) * x.sums[g + i];
      }
      scales[s] = _mm512_castps128_ps512(_mm_loadu_ps(left[s]));
    }
    if (g + 2 <= groups) {
      pairs.template operator()<1>(scales);
    }
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      __m256 all = _mm256_add_ps(_mm512_castps512_ps256(sum[s]), _mm512_extractf32x8_ps(sum[s], 1));
      if (groups % 2 != 0) {
        __m256i t = nibble_step<Wide, false>(load_bytes(codes[s]), reinterpret_cast<const __m256i*>(v), 1);
        all = _mm256_fmadd_ps(_mm256_cvtepi32_ps(t), _mm256_set1_ps(left[s][(groups - 1) % 4]), all);
      }
      y[s * stride + r] = add_lanes(_mm256_add_ps(all, added[s])) + rest[s];
    }
  }
}

// Up to this many columns, reading one row after another is faster than two distant rows at a time.
constexpr int64_t kNarrow = 1024;

template <bool Wide, ScaleType T>
static void group_rows(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  int64_t half = w.columns <= kNarrow ? 0 : (n1 - n0) / 2;
  paired_rows<Wide, T, 2>(w, x, n0, half, y);
  paired_rows<Wide, T, 1>(w, x, n0 + 2 * half, n1 - n0 - 2 * half, y + 2 * half);
}

}  // namespace ingot::cpu::INGOT_ISA
