// Row products of 2-bit codes with AVX-512. A byte has the codes of four columns, so three shifts unpack 256 of them:
// vector j holds columns 4i + j, and activations come in the same order (Layout::quarters).
#pragma once

#include "cpu/matmul/stream/vector_avx512.h"

namespace ingot::cpu::INGOT_ISA {

// The 2-bit codes of 256 columns, as the products unpack them: to four vectors of bytes, whose lanes have 16 columns.
struct Quarters {
  static constexpr int kColumns = 4 * kStep, kVectors = 4, kLaneColumns = 16;
  static constexpr bool kFP4 = false;
  __m512i low_bits = _mm512_set1_epi8(3);

  explicit Quarters(const Weights&) {}
  inline __attribute__((always_inline)) void unpack(__m512i v, __m512i* q) const {
    q[0] = _mm512_and_si512(v, low_bits);
#pragma GCC unroll 3
    for (int j = 1; j < 4; j++) {
      q[j] = _mm512_and_si512(_mm512_srli_epi16(v, unsigned(2 * j)), low_bits);
    }
  }
  inline __attribute__((always_inline)) void load(const uint8_t* p, __m512i* q) const {
    unpack(_mm512_loadu_si512(p), q);
  }
  inline __attribute__((always_inline)) void load_some(const uint8_t* p, int64_t columns, __m512i* q) const {
    unpack(_mm512_maskz_loadu_epi8((uint64_t(1) << columns / 4) - 1, p), q);
  }
};

// Computes y[i] = x . W[n0+i] for i < stride and, if S is 2, y[stride+i] for weight row n0+stride+i: two rows share the
// loads of activations, and two streams use more of the memory bandwidth than one.
template <int Group, int S>
static void quarter_rows(const Weights& w, const Activations& x, int64_t n0, int64_t stride, float* y) {
  constexpr int kBlock = Group < kStep ? Group : kStep;
  constexpr int kBlocks = Quarters::kColumns / kBlock, kChunks = kUnit / kBlocks;
  const Quarters quarters(w);
  const __m512i block_of_lane = _mm512_srli_epi32(
      _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
      __builtin_ctz(kBlock / Quarters::kLaneColumns));
  const __m512i next = _mm512_set1_epi32(kBlocks);
  const int64_t groups = w.groups(), bytes = w.row_bytes(), blocks = w.columns / kBlock;
  for (int64_t r = 0; r < stride; r++) {
    const uint8_t* codes[S];
    F sum[S], added[S], scales[S];
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      codes[s] = w.codes + (n0 + s * stride + r) * bytes;
      sum[s] = added[s] = set(0);
    }
    auto v = static_cast<const uint8_t*>(x.data);
    auto read_scales = [&](int64_t b, int64_t n) __attribute__((always_inline)) {
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        scales[s] = any_unit_scales<Group>(w, (n0 + s * stride + r) * groups, x, b, n, added[s]);
      }
    };
    // Adds the products of a chunk, whose activations are eight vectors of `width` bytes.
    auto chunk = [&](const __m512i (&q)[S][4], __m512i which, int64_t width, auto load_x)
                     __attribute__((always_inline)) {
      __m512i high[S], low[S];
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) {
        const __m512i a = load_x(v + j * width), b = load_x(v + (4 + j) * width);
#pragma GCC unroll 2
        for (int s = 0; s < S; s++) {
          high[s] = dot8(j ? high[s] : zeros(), q[s][j], a);
          low[s] = dot8(j ? low[s] : zeros(), q[s][j], b);
        }
      }
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        const __m512i t = _mm512_add_epi32(_mm512_slli_epi32(high[s], 8), low[s]);
        sum[s] = fma(_mm512_cvtepi32_ps(t), _mm512_permutexvar_ps(which, scales[s]), sum[s]);
      }
      v += 8 * width;
    };
    auto whole = [&](__m512i which) __attribute__((always_inline)) {
      __m512i q[S][4];
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        _mm_prefetch(reinterpret_cast<const char*>(codes[s] + kPrefetchDistance), _MM_HINT_NTA);
        quarters.load(codes[s], q[s]);
        codes[s] += Quarters::kColumns / 4;
      }
      chunk(q, which, 64, [](const uint8_t* p) __attribute__((always_inline)) { return load_lanes(p); });
    };
    int64_t b = 0;
    for (; b + kUnit <= blocks; b += kUnit) {
      read_scales(b, kUnit);
      __m512i which = block_of_lane;
#pragma GCC unroll 4
      for (int i = 0; i < kChunks; i++) {
        whole(which);
        which = _mm512_add_epi32(which, next);
      }
    }
    if (b < blocks) {
      read_scales(b, blocks - b);
      __m512i which = block_of_lane;
      int64_t left = w.columns - b * kBlock;
      for (; left >= Quarters::kColumns; left -= Quarters::kColumns) {
        whole(which);
        which = _mm512_add_epi32(which, next);
      }
      if (left > 0) {
        __m512i q[S][4];
#pragma GCC unroll 2
        for (int s = 0; s < S; s++) {
          quarters.load_some(codes[s], left, q[s]);
        }
        const int64_t width = (left + kStep - 1) / kStep * (kStep / 4);
        const __mmask64 mask = ~uint64_t(0) >> (64 - width);
        chunk(q, which, width, [mask](const uint8_t* p) __attribute__((always_inline)) {
          return _mm512_maskz_loadu_epi8(mask, p);
        });
      }
    }
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      y[s * stride + r] = INGOT_ISA::sum(sum[s] + added[s]);
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
