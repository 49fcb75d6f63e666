// Row products of 2-bit codes with AVX2. A byte has the codes of four columns, so three shifts unpack 128 of them:
// vector j holds columns 4i + j, and activations come in the same order (Layout::quarters).
#pragma once

#include "cpu/matmul/stream/vector_avx2.h"

namespace ingot::cpu::INGOT_ISA {

// Computes y[n-n0] = x . W[n] for n in [n0, n1), two weight rows at a time: they share the loads of activations, and
// two streams use more of the memory bandwidth than one.
template <ScaleType T, int Group>
static void quarter_rows(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  constexpr int S = 2, kAtOnce = 4;
  constexpr int kBlock = Group < kStep ? Group : kStep, kBlocks = kQuarterColumns / kBlock;
  constexpr int kBytes = kQuarterColumns / 4;
  const ScaleReader<T, Group> reader(w, x);
  const int64_t bytes = w.row_bytes(), blocks = w.columns / kBlock, stride = (n1 - n0 + 1) / S;
  for (int64_t r = 0; r < stride; r++) {
    const int64_t rows[S] = {n0 + r, n1 - stride + r};  // the middle row may be computed twice
    const uint8_t* codes[S] = {w.codes + rows[0] * bytes, w.codes + rows[1] * bytes};
    __m256 sum[S], added[S];
    sum[0] = sum[1] = added[0] = added[1] = _mm256_setzero_ps();
    auto v = static_cast<const uint8_t*>(x.data);
    for (int64_t b = 0; b < blocks; b += kChunkBlocks) {
      const int64_t n = blocks - b < kChunkBlocks ? blocks - b : kChunkBlocks;
      alignas(32) float scales[S][kChunkBlocks];
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        reader.read(rows[s], b, n, scales[s], added[s]);
      }
      const float* by = scales[0];
      IG_HIDE(by);
      // Adds the products of codes q, the u-th vector from the current one on. Its activations, eight vectors, are
      // loaded by load_x(0) to load_x(7).
      auto add = [&](int s, __m256i q, int u, auto load_x) __attribute__((always_inline)) {
        __m256i high, low;
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
          const __m256i shifted = j ? _mm256_srli_epi16(q, 2 * j) : q;
          const __m256i code = _mm256_and_si256(shifted, _mm256_set1_epi8(3));
          // eight products of codes of 2 bits fit in 16 bits
          const __m256i t = _mm256_maddubs_epi16(code, load_x(j)), d = _mm256_maddubs_epi16(code, load_x(4 + j));
          high = j ? _mm256_add_epi16(high, t) : t;
          low = j ? _mm256_add_epi16(low, d) : d;
          IG_KEEP(high);
          IG_KEEP(low);
        }
        const __m256i t = widened(_mm256_madd_epi16(high, _mm256_set1_epi16(256)), low);
        const __m256 scale = lane_scales<kBlocks>(by + s * kChunkBlocks + u * kBlocks);
        sum[s] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(t), scale, sum[s]);
      };
      auto some = [&]<int Vectors>() __attribute__((always_inline)) {
#pragma GCC unroll 4
        for (int u = 0; u < Vectors; u++) {
#pragma GCC unroll 2
          for (int s = 0; s < S; s++) {
            if (u % 2 == 0) {
              _mm_prefetch(reinterpret_cast<const char*>(codes[s] + u * kBytes + kPrefetchDistance), _MM_HINT_NTA);
            }
            add(s, load_bytes(codes[s] + u * kBytes), u, [&](int i) __attribute__((always_inline)) {
              return load_bytes(v + (8 * u + i) * 32);
            });
          }
        }
        codes[0] += Vectors * kBytes;
        codes[1] += Vectors * kBytes;
        v += Vectors * 8 * 32;
        by += Vectors * kBlocks;
      };
      int64_t vectors = n / kBlocks;
      for (; vectors >= kAtOnce; vectors -= kAtOnce) {
        some.template operator()<kAtOnce>();
      }
#pragma GCC unroll 1
      for (; vectors > 0; vectors--) {
        some.template operator()<1>();
      }
      const int64_t left = n % kBlocks * kBlock;
      if (left > 0) {
        const int width = left > kStep ? 32 : 16;  // those of a single step are half as wide
#pragma GCC unroll 2
        for (int s = 0; s < S; s++) {
          alignas(32) uint8_t copy[kBytes] = {};
          __builtin_memcpy(copy, codes[s], size_t(left / 4));
          add(s, load_bytes(copy), 0, [&](int i) __attribute__((always_inline)) {
            const uint8_t* of = v + i * width;
            return width == 32 ? load_bytes(of)
                               : _mm256_zextsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(of)));
          });
        }
      }
    }
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      y[rows[s] - n0] = add_lanes(sum[s] + added[s]);
    }
  }
}

static void quarter_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  with_scales(w, [&]<ScaleType T, int Group>() { quarter_rows<T, Group>(w, x, n0, n1, y); });
}

}  // namespace ingot::cpu::INGOT_ISA
