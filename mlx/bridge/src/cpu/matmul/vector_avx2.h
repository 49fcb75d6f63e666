// Row products of 4-bit codes with AVX2; see cpu/matmul/vector_x86.h.
#pragma once

#include "cpu/matmul/vector_x86.h"

namespace ingot::cpu::INGOT_ISA {

// Computes y[i] = x . W[n0+i] for i < stride and, if S is 2, y[stride+i] for weight row n0+stride+i: two streams use
// more of the memory bandwidth than one.
template <bool Wide, ScaleType T, int S>
static void stream_rows(const Weights& w, const Activations& x, int64_t n0, int64_t stride, float* y) {
  constexpr int kVectors = Wide ? 4 : 2;
  const int64_t groups = w.groups(), bytes = w.row_bytes();
  for (int64_t r = 0; r < stride; r++) {
    const uint8_t* codes[S];
    __m256 sum[S], added[S];
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      codes[s] = w.codes + (n0 + s * stride + r) * bytes;
      sum[s] = added[s] = _mm256_setzero_ps();
    }
    auto v = static_cast<const __m256i*>(x.data);
    int64_t g = 0;
    // Adds the products of N groups of each stream.
    auto steps = [&]<int N>() __attribute__((always_inline)) {
      alignas(32) float scales[S][8];
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        _mm256_store_ps(scales[s], group_scales<T, N>(w, (n0 + s * stride + r) * groups + g, x, g, added[s]));
      }
      const float* by = scales[0];
      IG_HIDE(by);
#pragma GCC unroll 8
      for (int i = 0; i < N; i++) {
#pragma GCC unroll 2
        for (int s = 0; s < S; s++) {
          if (i % 2 == 0) {
            // weights are read once and must not evict activations
            _mm_prefetch(reinterpret_cast<const char*>(codes[s] + kPrefetchDistance), _MM_HINT_NTA);
          }
          __m256i sums_of_8 = nibble_step<Wide, false>(load_bytes(codes[s]), v, 1);
          sum[s] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums_of_8), _mm256_broadcast_ss(by + 8 * s + i), sum[s]);
          codes[s] += 32;
        }
        v += kVectors;
      }
      g += N;
    };
    while (g + 8 <= groups) {
      steps.template operator()<8>();
    }
    if (g + 4 <= groups) {  // the matrices of experts have few columns
      steps.template operator()<4>();
    }
    // what the biases of the last groups add: fewer than four, for which a vector load would read past the row
    float rest[S] = {};
    for (; g < groups; g++) {
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        int64_t at = (n0 + s * stride + r) * groups + g;
        float scale = scale_of<T>(w.scales, at) * x.scales[g];
        rest[s] += scale_of<T>(w.biases, at) * x.sums[g];
        __m256i sums_of_8 = nibble_step<Wide, false>(load_bytes(codes[s]), v, 1);
        sum[s] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums_of_8), _mm256_set1_ps(scale), sum[s]);
        codes[s] += 32;
      }
      v += kVectors;
    }
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      y[s * stride + r] = add_lanes(_mm256_add_ps(sum[s], added[s])) + rest[s];
    }
  }
}

template <bool Wide, ScaleType T>
static void group_rows(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  int64_t half = (n1 - n0) / 2;
  stream_rows<Wide, T, 2>(w, x, n0, half, y);
  stream_rows<Wide, T, 1>(w, x, n0 + 2 * half, n1 - n0 - 2 * half, y + 2 * half);
}

}  // namespace ingot::cpu::INGOT_ISA
