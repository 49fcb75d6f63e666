// Row products of e4m3 weights with AVX-512, in float32: they are bound by memory, so that integers gain nothing.
#pragma once

#include "cpu/matmul/stream/vector_avx512.h"

namespace ingot::cpu::INGOT_ISA {

// Computes y[i] = x . W[n0+i] for i < stride and, if S is 2, y[stride+i] for weight row n0+stride+i: two streams use
// more of the memory bandwidth than one.
template <int S>
static void fp8_streams(const Weights& w, const float* x, int64_t n0, int64_t stride, float* y) {
  const __m512i bits = _mm512_set1_epi16(int16_t(0xbfff));
  const int64_t groups = w.groups();
  for (int64_t r = 0; r < stride; r++) {
    const uint8_t* codes[S];
    F sum[S], other[S];
    alignas(64) float scales[S][kUnit];
    const float *v = x, *scale = scales[0];
    IG_HIDE(scale);
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      codes[s] = w.codes + (n0 + s * stride + r) * w.columns;
      sum[s] = other[s] = set(0);
    }
    // Adds the products of group i of the unit to sum.
    auto group = [&](int i, F (&sum)[S]) __attribute__((always_inline)) {
      const F first = load(v), second = load(v + kLanes);
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        // Codes become float16 numbers that are too small by a factor of 2^8: the sign moves from bit 7 to bit 15.
        __m512i h = _mm512_and_si512(_mm512_slli_epi16(_mm512_cvtepi8_epi16(load_bytes(codes[s])), 7), bits);
        F part = _mm512_cvtph_ps(_mm512_castsi512_si256(h)) * first;
        part = fma(_mm512_cvtph_ps(_mm512_extracti64x4_epi64(h, 1)), second, part);
        sum[s] = fma(part, set(scale[s * kUnit + i]), sum[s]);
        codes[s] += 32;
      }
      v += 32;
    };
    for (int64_t g = 0; g < groups; g += kUnit) {
      const int count = int(groups - g < kUnit ? groups - g : kUnit);
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        store(scales[s], load_16<ScaleType::e8m0>(w.scales, (n0 + s * stride + r) * groups + g, count));
      }
      IG_BARRIER();
      if (count < kUnit) {
        for (int i = 0; i < count; i++) {
          group(i, sum);
        }
        continue;
      }
#pragma GCC unroll 8
      for (int i = 0; i < kUnit; i += 2) {
#pragma GCC unroll 2
        for (int s = 0; s < S; s++) {
          _mm_prefetch(reinterpret_cast<const char*>(codes[s] + kPrefetchDistance), _MM_HINT_NTA);
        }
        group(i, sum);
        group(i + 1, other);
      }
    }
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      y[s * stride + r] = INGOT_ISA::sum(sum[s] + other[s]) * 256.0f;
    }
  }
}

static void fp8_rows(const Weights& w, const float* x, int64_t n0, int64_t n1, float* y) {
  const int64_t half = (n1 - n0) / 2;
  fp8_streams<2>(w, x, n0, half, y);
  fp8_streams<1>(w, x, n0 + 2 * half, n1 - n0 - 2 * half, y + 2 * half);
}

// A row of e4m3 weights, as stream_floats reads it: a group at a time.
struct FP8Row {
  static constexpr int kBytes = 2 * kLanes;  // that load reads

  const uint8_t *at, *scales;

  FP8Row(const Weights& w, int64_t n)
      : at(w.codes + n * w.columns), scales(static_cast<const uint8_t*>(w.scales) + n * w.groups()) {}
  inline __attribute__((always_inline)) void load(int64_t k, F& a, F& b) const {
    const F scale = set(power_of_two_bits(scales[k / 32]) * 256.0f);
    __m512i h = _mm512_slli_epi16(_mm512_cvtepi8_epi16(load_bytes(at + k)), 7);
    h = _mm512_and_si512(h, _mm512_set1_epi16(int16_t(0xbfff)));
    a = _mm512_cvtph_ps(_mm512_castsi512_si256(h)) * scale;
    b = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(h, 1)) * scale;
  }
  F load_some(int64_t, int) const { return set(0); }  // rows have whole groups
};

}  // namespace ingot::cpu::INGOT_ISA
