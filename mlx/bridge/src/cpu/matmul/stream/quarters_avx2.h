// Row products of 2-bit codes with AVX2. A byte has the codes of four columns, so three shifts unpack 128 of them:
// vector j holds columns 4i + j, and activations come in the same order (Layout::quarters).
#pragma once

#include "cpu/matmul/stream/vector_avx2.h"

namespace ingot::cpu::INGOT_ISA {

// Computes y[i] = x . W[n0+i] for i < stride and, if S is 2, y[stride+i] for weight row n0+stride+i: two rows share the
// loads of activations, and two streams use more of the memory bandwidth than one.
template <int Group, int S>
static void quarter_rows(const Weights& w, const Activations& x, int64_t n0, int64_t stride, float* y) {
  constexpr int kBlock = Group < kStep ? Group : kStep;
  constexpr int kBlocks = kQuarterColumns / kBlock, kChunks = kUnit / kBlocks;
  constexpr int kChunkBytes = kQuarterColumns / 4;
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
    auto v = static_cast<const uint8_t*>(x.data);
    auto read_scales = [&](int64_t b, int64_t n) __attribute__((always_inline)) {
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        _mm256_store_ps(scales[s], any_unit_scales<Group>(w, n0 + s * stride + r, x, b, n, added[s]));
      }
    };
    // Adds the products of a chunk, the i-th of the unit, whose activations are eight vectors of `width` bytes.
    auto chunk = [&](const __m256i (&q)[S], const float* by, int i, int64_t width, auto load_x)
                     __attribute__((always_inline)) {
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        __m256i high, low;
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
          const __m256i shifted = j ? _mm256_srli_epi16(q[s], 2 * j) : q[s];
          const __m256i code = _mm256_and_si256(shifted, _mm256_set1_epi8(3));
          // eight products of codes of 2 bits fit in 16 bits
          const __m256i t = _mm256_maddubs_epi16(code, load_x(v + j * width));
          const __m256i u = _mm256_maddubs_epi16(code, load_x(v + (4 + j) * width));
          high = j ? _mm256_add_epi16(high, t) : t;
          low = j ? _mm256_add_epi16(low, u) : u;
          IG_KEEP(high);
          IG_KEEP(low);
        }
        const __m256i t = widened(_mm256_madd_epi16(high, _mm256_set1_epi16(256)), low);
        const __m256 scale = lane_scales<kBlocks>(by + s * kUnit + i * kBlocks);
        sum[s] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(t), scale, sum[s]);
      }
      v += 8 * width;
    };
    auto whole = [&](const float* by, int i) __attribute__((always_inline)) {
      __m256i q[S];
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        if (i % 2 == 0) {
          _mm_prefetch(reinterpret_cast<const char*>(codes[s] + kPrefetchDistance), _MM_HINT_NTA);
        }
        q[s] = load_bytes(codes[s]);
        codes[s] += kChunkBytes;
      }
      chunk(q, by, i, 32, [](const uint8_t* p) __attribute__((always_inline)) { return load_bytes(p); });
    };
    int64_t b = 0;
    for (; b + kUnit <= blocks; b += kUnit) {
      read_scales(b, kUnit);
      const float* by = scales[0];
      IG_HIDE(by);
#pragma GCC unroll 4
      for (int i = 0; i < kChunks; i++) {
        whole(by, i);
      }
    }
    if (b < blocks) {
      read_scales(b, blocks - b);
      const float* by = scales[0];
      IG_HIDE(by);
      int64_t left = w.columns - b * kBlock;
      int i = 0;
      for (; left >= kQuarterColumns; left -= kQuarterColumns) {
        whole(by, i++);
      }
      if (left > 0) {
        __m256i q[S];
#pragma GCC unroll 2
        for (int s = 0; s < S; s++) {
          alignas(32) uint8_t copy[kChunkBytes] = {};
          __builtin_memcpy(copy, codes[s], size_t(left / 4));
          q[s] = load_bytes(copy);
        }
        if (left > kStep) {
          chunk(q, by, i, 32, [](const uint8_t* p) __attribute__((always_inline)) { return load_bytes(p); });
        } else {  // a single step, whose activations are half as wide
          chunk(q, by, i, 16, [](const uint8_t* p) __attribute__((always_inline)) {
            return _mm256_zextsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
          });
        }
      }
    }
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      y[s * stride + r] = add_lanes(sum[s] + added[s]);
    }
  }
}

static void quarter_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  with_group(w, [&]<int Group>() {
    const int64_t half = (n1 - n0) / 2;
    quarter_rows<Group, 2>(w, x, n0, half, y);
    quarter_rows<Group, 1>(w, x, n0 + 2 * half, n1 - n0 - 2 * half, y + 2 * half);
  });
}

}  // namespace ingot::cpu::INGOT_ISA
