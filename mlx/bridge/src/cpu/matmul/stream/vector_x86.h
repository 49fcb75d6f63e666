// What the row products of x86 share: y = x W^T for one activation row. Weights are streamed once; see
// cpu/matmul/matmul.h. cpu/matmul/stream/vector_avx2.h and vector_avx512.h have the products.
#pragma once

#include <immintrin.h>

#include "cpu/simd/dot_x86.h"
#include "cpu/matmul/unpack_avx2.h"

namespace ingot::cpu::INGOT_ISA {

// The integers of a packed step of activations. They also determine the order within eight columns (see order_of in
// pack_x86.h).
enum class Integers {
  words,   // int16, two per dword
  bytes,   // int8, four per dword
  halves,  // int16 as high and low bytes: 256 * high + low
};

// Prefetch distance in bytes: far enough to cover the memory latency, near enough to stay in the L1 cache.
constexpr int kPrefetchDistance = 2048;

// Prefetch distance of scales in bytes. They are read far less often than codes, so the hardware's prefetchers evict
// their streams. With AVX2, 2048 bytes would be many weight rows ahead, and the codes in between would evict them from
// the L1 cache.
constexpr int kScalesAhead = kLanes == 16 ? 2048 : 256;

IG_INLINE float add_lanes(__m256 v) {
  __m128 a = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  a = _mm_add_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)));
}

// Reports whether a step is interleaved with its neighbour, in an activation row of the given number of steps.
IG_INLINE bool is_interleaved(int64_t step, int64_t steps) { return kInterleaveSteps && (step | 1) < steps; }

// nibble_product is the row product of 4-bit codes, quarter_product that of 2-bit codes, byte_product that of codes of
// other widths, and fp8_rows that of e4m3 weights: y[n-n0] = x . W[n] for n in [n0, n1).
template <bool Wide>
static void nibble_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y);
static void byte_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y);
static void quarter_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y);
static void fp8_rows(const Weights& w, const float* x, int64_t n0, int64_t n1, float* y);

static void row_product_of_one(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  if (w.format == Format::plain) {
    return plain_row_product(w, static_cast<const float*>(x.data), n0, n1, y);
  }
  if (w.format == Format::fp8) {
    return fp8_rows(w, static_cast<const float*>(x.data), n0, n1, y);
  }
  if (x.layout.quarters) {
    return quarter_product(w, x, n0, n1, y);
  }
  if (!x.layout.nibbles) {
    return byte_product(w, x, n0, n1, y);
  }
  return x.layout.mode == Mode::i16 ? nibble_product<true>(w, x, n0, n1, y) : nibble_product<false>(w, x, n0, n1, y);
}

// Calls product<Group>() with the group of affine weights as a constant.
template <class F>
IG_INLINE void with_group(const Weights& w, F product) {
  switch (w.group) {
    case 32:
      return product.template operator()<32>();
    case 64:
      return product.template operator()<64>();
    default:
      return product.template operator()<128>();
  }
}

// Calls of<T>() with the type of the scales of affine weights as a constant.
template <class F>
IG_INLINE void with_scale_type(const Weights& w, F of) {
  switch (w.scale_type) {
    case ScaleType::f16:
      return of.template operator()<ScaleType::f16>();
    case ScaleType::bf16:
      return of.template operator()<ScaleType::bf16>();
    default:
      return of.template operator()<ScaleType::f32>();
  }
}

// Calls product<T, Group>() with the type of the scales and the group of affine weights as constants.
template <class F>
IG_INLINE void with_scales(const Weights& w, F product) {
  with_scale_type(w, [&]<ScaleType T>() {
    with_group(w, [&]<int Group>() { product.template operator()<T, Group>(); });
  });
}

// Calls product<FP4, T, Group>() with the format, the scales' type and the group of 4-bit weights as constants.
template <class F>
IG_INLINE void with_nibbles(const Weights& w, F product) {
  switch (w.scale_type) {
    case ScaleType::e8m0:
      return product.template operator()<true, ScaleType::e8m0, 32>();
    case ScaleType::e4m3:
      return product.template operator()<true, ScaleType::e4m3, 16>();
    default:
      with_scales(w, [&]<ScaleType T, int Group>() { product.template operator()<false, T, Group>(); });
  }
}

}  // namespace ingot::cpu::INGOT_ISA
