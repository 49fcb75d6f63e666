// What the row products of x86 share: y = x W^T for one activation row. Weights are streamed once; see
// cpu/matmul/matmul.h. cpu/matmul/stream/vector_avx2.h and vector_avx512.h have the products.
#pragma once

#include <immintrin.h>

#include "cpu/simd/dot_x86.h"
#include "cpu/matmul/unpack_avx2.h"

namespace ingot::cpu::INGOT_ISA {

// Prefetch distance in bytes: far enough to cover the memory latency, near enough to stay in the L1 cache.
constexpr int kPrefetchDistance = 2048;

IG_INLINE float add_lanes(__m256 v) {
  __m128 a = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  a = _mm_add_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)));
}

// Reports whether a step is interleaved with its neighbour, in an activation row of the given number of steps.
IG_INLINE bool is_interleaved(int64_t step, int64_t steps) { return kInterleaveSteps && (step | 1) < steps; }

// Returns the index of a step's first vector. The vectors of an interleaved step (pair) are two apart.
IG_INLINE int64_t vector_index(int64_t step, bool pair, int vectors) {
  return pair ? (step & ~int64_t(1)) * vectors + (step & 1) : step * vectors;
}

// Returns the products of 64 unpacked codes with an activation row as eight sums, one for each eight codes. The vectors
// of x are `apart` vectors apart. Int16 activations are two vectors of high bytes and two of low bytes with
// kSplitBytes.
template <bool Wide>
IG_INLINE __m256i step_sums(const __m256i* q, const __m256i* x, int apart) {
  if constexpr (Wide && kSplitBytes) {
    auto both = [&](__m256i sum, int j) __attribute__((always_inline)) {
      return add8(add8(sum, q[0], load_bytes(x + j * apart)), q[1], load_bytes(x + (j + 1) * apart));
    };
    return both(_mm256_slli_epi32(both(_mm256_setzero_si256(), 0), 8), 2);
  } else if constexpr (Wide) {
    __m256i a = _mm256_madd_epi16(q[0], load_bytes(x)), b = _mm256_madd_epi16(q[2], load_bytes(x + 2 * apart));
    return _mm256_add_epi32(add16(a, q[1], load_bytes(x + apart)), add16(b, q[3], load_bytes(x + 3 * apart)));
  } else {
#if defined(__AVX512VNNI__)
    return add8(add8(_mm256_setzero_si256(), q[0], load_bytes(x)), q[1], load_bytes(x + apart));
#else
    __m256i t = _mm256_add_epi16(_mm256_maddubs_epi16(q[0], load_bytes(x)),
                                 _mm256_maddubs_epi16(q[1], load_bytes(x + apart)));
    return _mm256_madd_epi16(t, _mm256_set1_epi16(1));
#endif
  }
}

// Unpacks 64 4-bit codes to four vectors of int16 or two of bytes, as step_sums takes them.
template <bool Int16, bool FP4>
IG_INLINE void nibbles(__m256i v, __m256i* q) {
  constexpr bool Wide = Int16 && !kSplitBytes;
  constexpr int kVectors = Wide ? 4 : 2;
  const __m256i mask = Wide ? _mm256_set1_epi16(15) : _mm256_set1_epi8(15), upper = _mm256_set1_epi32(int(0x80008000));
#pragma GCC unroll 4
  for (int j = 0; j < kVectors; j++) {
    __m256i shifted = j == 0 ? v : _mm256_srli_epi16(v, 4 * j);
    q[j] = j == 3 ? shifted : _mm256_and_si256(shifted, mask);
    if (FP4) {
      q[j] = _mm256_shuffle_epi8(fp4_table(), Wide ? _mm256_or_si256(q[j], upper) : q[j]);
    }
  }
}

// step_sums of 64 packed 4-bit codes.
template <bool Wide, bool FP4>
IG_INLINE __m256i nibble_step(__m256i v, const __m256i* x, int apart) {
  __m256i q[4];
  nibbles<Wide, FP4>(v, q);
  return step_sums<Wide>(q, x, apart);
}

// nibble_product is the row product of 4-bit codes, byte_product that of codes of other widths, and fp8_rows that of
// e4m3 weights: y[n-n0] = x . W[n] for n in [n0, n1).
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
  if constexpr (kSplitBytes) {
    if (x.layout.quarters) {
      return quarter_product(w, x, n0, n1, y);
    }
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

// Calls product<FP4, T, Group>() with the format, the scales' type and the group of 4-bit weights as constants.
template <class F>
IG_INLINE void with_nibbles(const Weights& w, F product) {
  switch (w.scale_type) {
    case ScaleType::e8m0:
      return product.template operator()<true, ScaleType::e8m0, 32>();
    case ScaleType::e4m3:
      return product.template operator()<true, ScaleType::e4m3, 16>();
    case ScaleType::f32:
      return with_group(w, [&]<int Group>() { product.template operator()<false, ScaleType::f32, Group>(); });
    case ScaleType::f16:
      return with_group(w, [&]<int Group>() { product.template operator()<false, ScaleType::f16, Group>(); });
    case ScaleType::bf16:
      return with_group(w, [&]<int Group>() { product.template operator()<false, ScaleType::bf16, Group>(); });
  }
}

}  // namespace ingot::cpu::INGOT_ISA
